import java.util.Base64;
import java.util.Map;
import java.util.StringJoiner;
import java.util.TreeMap;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.MessageIdAdv;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.Reader;

/** ReadAll serviceUrl topic..: a line of tab-separated fields for every message; texts in base64, "-" is null. */
public class ReadAll {
    private static String text(byte[] data) {
        return data == null ? "-" : "." + Base64.getEncoder().encodeToString(data);
    }

    private static String text(String data) {
        return text(data == null ? null : data.getBytes(java.nio.charset.StandardCharsets.UTF_8));
    }

    private static String row(String topic, Message<byte[]> message) {
        MessageIdAdv place = (MessageIdAdv) message.getMessageId();
        StringJoiner properties = new StringJoiner(",");
        for (Map.Entry<String, String> each : new TreeMap<>(message.getProperties()).entrySet()) {
            properties.add(text(each.getKey()) + text(each.getValue()));
        }
        return String.join("\t", topic, "" + place.getLedgerId(), "" + place.getEntryId(), "" + place.getBatchIndex(),
                text(message.getValue()), text(message.getKey()), properties.toString(),
                "" + message.getPublishTime(), "" + message.getEventTime(), text(message.getOrderingKey()),
                "" + message.getSequenceId(), text(message.getProducerName()));
    }

    public static void main(String[] arguments) throws Exception {
        PulsarClient client = PulsarClient.builder().serviceUrl(arguments[0]).build();
        for (int i = 1; i < arguments.length; i++) {
            Reader<byte[]> reader =
                    client.newReader().topic(arguments[i]).startMessageId(MessageId.earliest).create();
            while (reader.hasMessageAvailable()) {
                System.out.println(row(arguments[i], reader.readNext()));
            }
            reader.close();
        }
        client.close();
    }
}
