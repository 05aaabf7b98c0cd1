// A process of its own for content-collect.test.ts: one of several that put content into the folder given and collect
// it, in a time in which each round is hours later, until it is killed. What is referred to are the sets `kept …`,
// which it puts again and again; all others are nobody's.
import { collectContent } from '../../server/store/content/content-collect.ts'
import { contentFilesIn } from '../../server/store/content/content-files.ts'
import { contentStoreOn } from '../../server/store/content/file-content-store.ts'
import { sha256Hex } from '../../shared/kube/canonical.ts'
import { systemClock } from '../../shared/runtime/clock.ts'

const [folder = '', kept = '', name = ''] = process.argv.slice(2)
const startMs = systemClock.nowMs()
/** Nine hours pass in each second, for every process alike. */
const clock = { ...systemClock, nowMs: () => startMs + (systemClock.nowMs() - startMs) * 9 * 3_600 }
const files = contentFilesIn(folder, clock)
const content = contentStoreOn(files)
const bytesOf = (text: string) => new TextEncoder().encode(text)
const keptNames = Array.from({ length: Number(kept) }, (_, n) => `kept ${n}`)
const references = new Set(keptNames.map((text) => sha256Hex(bytesOf(text))))

process.stdout.write('ready\n')
for (let round = 0; ; round++) {
  for (const text of keptNames) if (round % 3 === 0 || !(await content.refresh(sha256Hex(bytesOf(text))))) await content.put(bytesOf(text))
  for (let n = 0; n < 20; n++) await content.put(bytesOf(`${name} ${round} ${n}`))
  for (let n = 0; n < 20; n++) await content.put(bytesOf(`shared ${n}`))
  const referenced = async (names: readonly string[]) => new Set(names.filter((sha) => references.has(sha)))
  await collectContent({ files, referenced, clock })
}
