// Entry point of the Worker that reads what would block the server's main thread: bootstraps, re-bases, long deltas.
// One request at a time, in its own read transactions; it signs nothing.
import { describeError } from '../../shared/runtime/loop.ts'
import type { LargeRead, WorkerAnswer } from './large-reads.ts'
import { readBody } from './page-source.ts'
import { createRowFrames } from './row-frames.ts'
import { UNBOUNDED } from './row-lines.ts'
import { openShardReader, type ShardReader } from './shard-reader.ts'

/** Compressed pages that may be asked for again by the next cluster. */
const FRAMES_BYTES_MAX = 32 * 1_024 * 1_024

const frames = createRowFrames(FRAMES_BYTES_MAX)
const readers = new Map<string, ShardReader>()

self.onmessage = ({ data }: MessageEvent<LargeRead>) => {
  try {
    const read = readBody(readerOf(data), frames, data, UNBOUNDED)
    if (read.kind !== 'rows') {
      self.postMessage({ kind: 'read', read } satisfies WorkerAnswer)
      return
    }
    const bytes = new Uint8Array(read.body.bytes) // a copy: what is given away is gone here, and a packed one stays for the next cluster
    const answer: WorkerAnswer = { kind: 'read', read: { ...read, body: { ...read.body, bytes } }, compressions: frames.compressions }
    self.postMessage(answer, [bytes.buffer])
    setImmediate(() => Bun.gc(true)) // what a large page leaves behind is larger than all else here
  } catch (error) {
    self.postMessage({ kind: 'failed', error: describeError(error) } satisfies WorkerAnswer)
  }
}

/** A file that was replaced (compaction, a rebuild) has another dbId: what is open is the file that was. */
function readerOf({ path, dbId }: LargeRead): ShardReader {
  const held = readers.get(path)
  if (held?.dbId === dbId) return held
  held?.close()
  readers.delete(path)
  const reader = openShardReader(path)
  readers.set(path, reader)
  return reader
}
