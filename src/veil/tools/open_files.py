"""The limit on open files of this process: every connection needs one."""

from __future__ import annotations

from veil.errors import InputError

__all__ = ["require_files"]


def require_files(count: int, purpose: str) -> None:
    """Make sure that this process may open `count` files; raise the soft limit to that where it is lower.

    Without this, a process that has no files left could neither accept connections nor open the files it works on.
    """
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= count:
        return
    if hard != resource.RLIM_INFINITY and hard < count:
        raise InputError(
            f"open files: expected a limit of at least {count} for {purpose}, got {hard}; "
            f"raise the limit first (`ulimit -n {count}`, or LimitNOFILE= in a unit)"
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (count, hard))
