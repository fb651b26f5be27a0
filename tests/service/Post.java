// Posts a file twice with the default client of Java, which asks for an upgrade to HTTP/2: java Post.java URL TYPE FILE.
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Path;

public class Post {
    public static void main(String[] arguments) throws Exception {
        HttpClient client = HttpClient.newHttpClient();
        HttpRequest request = HttpRequest.newBuilder(URI.create(arguments[0]))
                .header("Content-Type", arguments[1])
                .POST(HttpRequest.BodyPublishers.ofFile(Path.of(arguments[2])))
                .build();
        for (int i = 0; i < 2; i++) {
            HttpResponse<String> answer = client.send(request, HttpResponse.BodyHandlers.ofString());
            System.out.println(answer.statusCode() + " " + answer.body());
        }
    }
}
