import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericFixed;
import org.apache.avro.generic.IndexedRecord;
import org.apache.avro.io.DecoderFactory;

/** Resolve file: of each line {writer, reader, rows: [base64]}, a line of what Java's reader gives; text: it refuses. */
public class Resolve {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] arguments) throws Exception {
        try (BufferedReader lines = Files.newBufferedReader(Path.of(arguments[0]))) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                JsonNode one = JSON.readTree(line);
                List<Object> found = new ArrayList<>();
                for (JsonNode row : one.get("rows")) {
                    found.add(read(one, Base64.getDecoder().decode(row.textValue())));
                }
                System.out.println(JSON.writeValueAsString(found));
            }
        }
    }

    private static Object read(JsonNode one, byte[] row) {
        try {
            Schema writer = new Schema.Parser().parse(one.get("writer").textValue());
            Schema reader = new Schema.Parser().parse(one.get("reader").textValue());
            Object value = new GenericDatumReader<Object>(writer, reader)
                    .read(null, DecoderFactory.get().binaryDecoder(row, null));
            return plain(reader, value);
        } catch (Exception error) {
            return error.toString();
        }
    }

    /** Bytes as base64; the value of a union of several types as {branch: value}. */
    private static Object plain(Schema schema, Object value) {
        switch (schema.getType()) {
            case UNION:
                Schema branch = schema.getTypes().get(GenericData.get().resolveUnion(schema, value));
                long others = schema.getTypes().stream().filter(one -> one.getType() != Schema.Type.NULL).count();
                Object inner = plain(branch, value);
                return value == null || others < 2 ? inner : Map.of(branch.getFullName(), inner);
            case RECORD:
                Map<String, Object> record = new LinkedHashMap<>();
                for (Schema.Field field : schema.getFields()) {
                    record.put(field.name(), plain(field.schema(), ((IndexedRecord) value).get(field.pos())));
                }
                return record;
            case ARRAY:
                List<Object> items = new ArrayList<>();
                for (Object item : (Collection<?>) value) {
                    items.add(plain(schema.getElementType(), item));
                }
                return items;
            case MAP:
                Map<String, Object> entries = new LinkedHashMap<>();
                ((Map<?, ?>) value).forEach((key, item) -> entries.put(key.toString(), plain(schema.getValueType(), item)));
                return entries;
            case ENUM:
            case STRING:
                return value.toString();
            case FIXED:
                return Base64.getEncoder().encodeToString(((GenericFixed) value).bytes());
            case BYTES:
                byte[] bytes = new byte[((ByteBuffer) value).remaining()];
                ((ByteBuffer) value).duplicate().get(bytes);
                return Base64.getEncoder().encodeToString(bytes);
            case FLOAT:
                return (double) (Float) value;
            default:
                return value;
        }
    }
}
