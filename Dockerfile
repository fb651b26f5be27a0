# The collector: `docker build -t veil .`, then docs/collector/deployment.md. Nothing secret is in the image or in what it is built from.

FROM python:3.13-slim-bookworm AS build
WORKDIR /source
COPY pyproject.toml constraints.txt setup.py README.md LICENSE ./
COPY src src
# --no-cache-dir: the cache would stay behind in this stage for nothing
RUN python -m venv /opt/veil && /opt/veil/bin/pip install --no-cache-dir --disable-pip-version-check --constraint constraints.txt '.[collector,sql]'

FROM python:3.13-slim-bookworm
LABEL org.opencontainers.image.title="veil" \
      org.opencontainers.image.description="A collector of reports under local differential privacy" \
      org.opencontainers.image.licenses="Apache-2.0"
# a number, so that `runAsNonRoot` can be checked without looking into the image
RUN groupadd --system --gid 10001 veil \
    && useradd --system --uid 10001 --gid veil --no-create-home --home-dir /var/lib/veil --shell /usr/sbin/nologin veil \
    && install --directory --owner=veil --group=veil --mode=0700 /var/lib/veil
COPY --from=build /opt/veil /opt/veil
# everything that is written goes to one folder: the rest of the file system may be read-only
ENV PATH=/opt/veil/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    NUMBA_CACHE_DIR=/var/lib/veil/kernels \
    VEIL_FOLDER=/var/lib/veil \
    VEIL_HOST=0.0.0.0 \
    VEIL_PORT=8321
# a new volume begins with these kernels; on another kind of processor the first start compiles its own
RUN /opt/veil/bin/veil warm && chown --recursive veil:veil /var/lib/veil
USER 10001:10001
WORKDIR /var/lib/veil
VOLUME /var/lib/veil
EXPOSE 8321
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=10s --start-period=60s --retries=3 \
    CMD ["python", "-c", "import os, urllib.request as web; web.urlopen(f'http://127.0.0.1:{os.environ[\"VEIL_PORT\"]}/readyz', timeout=8)"]
ENTRYPOINT ["veil"]
CMD ["serve"]
