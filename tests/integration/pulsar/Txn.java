import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.MessageIdAdv;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.TypedMessageBuilder;
import org.apache.pulsar.client.api.transaction.Transaction;

/** Txn serviceUrl topic batching: three messages, two aborted, two committed in two open transactions, and one more.
 * Prints "aborted ledger:entry" for each aborted one. */
public class Txn {
    private static PulsarClient client;

    private static Transaction begin() throws Exception {
        return client.newTransaction().withTransactionTimeout(60, TimeUnit.SECONDS).build().get();
    }

    private static List<MessageId> send(Producer<byte[]> producer, Transaction transaction, String text, int count) throws Exception {
        List<CompletableFuture<MessageId>> sent = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            TypedMessageBuilder<byte[]> message =
                    transaction == null ? producer.newMessage() : producer.newMessage(transaction);
            sent.add(message.value((text + i).getBytes()).sendAsync());
        }
        producer.flush();
        List<MessageId> ids = new ArrayList<>();
        for (CompletableFuture<MessageId> one : sent) {
            ids.add(one.get());
        }
        return ids;
    }

    public static void main(String[] arguments) throws Exception {
        client = PulsarClient.builder().serviceUrl(arguments[0]).enableTransaction(true).build();
        Producer<byte[]> producer = client.newProducer()
                .topic(arguments[1])
                .enableBatching(Boolean.parseBoolean(arguments[2]))
                .sendTimeout(0, TimeUnit.SECONDS)
                .create();
        send(producer, null, "plain", 3);
        Transaction aborted = begin();
        Transaction committed = begin();
        for (MessageId id : send(producer, aborted, "aborted", 2)) {
            MessageIdAdv place = (MessageIdAdv) id;
            System.out.println("aborted " + place.getLedgerId() + ":" + place.getEntryId());
        }
        send(producer, committed, "committed", 2);
        aborted.abort().get();
        send(producer, null, "between", 1);
        committed.commit().get();
        client.close();
    }
}
