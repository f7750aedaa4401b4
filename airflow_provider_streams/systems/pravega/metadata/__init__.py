"""What Pravega stores about streams: segments, stream cuts, pointers."""
