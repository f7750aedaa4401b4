import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.ProducerBuilder;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.TypedMessageBuilder;

/** EventTimes url topic milliseconds..: messages so late, written in each way; "-": without an event time. */
public class EventTimes {
    public static void main(String[] args) throws Exception {
        try (PulsarClient client = PulsarClient.builder().serviceUrl(args[0]).build()) {
            for (String way : new String[] {"single", "batches", "chunks"}) {
                try (Producer<byte[]> producer = builder(client, way).topic(args[1]).create()) {
                    for (int i = 2; i < args.length; i++) {
                        write(producer, way, i, args[i]);
                        Thread.sleep(10);
                    }
                    producer.flush();
                }
            }
        }
    }

    private static void write(Producer<byte[]> producer, String way, int number, String late) {
        TypedMessageBuilder<byte[]> message = producer.newMessage();
        String at = "null";
        if (!late.equals("-")) {
            long moment = System.currentTimeMillis() - Long.parseLong(late);
            message.eventTime(moment);
            at = "" + moment;
        }
        String filling = way.equals("chunks") ? "x".repeat(2000) : "";
        String value = String.format("{\"id\": \"%s-%d\", \"at\": %s, \"x\": \"%s\"}", way, number, at, filling);
        message.value(value.getBytes()).sendAsync();
    }

    private static ProducerBuilder<byte[]> builder(PulsarClient client, String way) {
        if (way.equals("chunks")) {
            return client.newProducer().enableBatching(false).enableChunking(true).chunkMaxMessageSize(700);
        }
        return client.newProducer()
                .enableBatching(way.equals("batches"))
                .batchingMaxMessages(7)
                .batchingMaxPublishDelay(100, TimeUnit.MILLISECONDS);
    }
}
