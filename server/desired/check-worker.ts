// Entry point of the Worker that checks whole shard files: seconds of reading that must not delay other work. It lives
// for one check.
import { examineShard } from './shard-report.ts'

self.onmessage = ({ data }: MessageEvent<string>) => self.postMessage(examineShard(data))
