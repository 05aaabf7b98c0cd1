// Entry point of the Worker that looks through whole shard files: seconds of reading that nobody shall wait for. It lives for one look.
import { examineShard } from './shard-report.ts'

self.onmessage = ({ data }: MessageEvent<string>) => self.postMessage(examineShard(data))
