// Writes renders into a folder until it is killed: `bun cache-until-killed.ts FOLDER KEYS`.
import { loadSecretBox } from '../../server/access/secret-box.ts'
import { createCacheFiles } from '../../server/render/cache/files.ts'
import { systemClock } from '../../shared/runtime/clock.ts'

const [dir = '', keys = ''] = process.argv.slice(2)
const files = createCacheFiles({ dir, seal: loadSecretBox(keys), clock: systemClock, bytesMax: 1_000_000_000 })
for (let n = 0; ; n = (n + 1) % 400) {
  await files.put(n.toString(16).padStart(32, '0'), new Uint8Array(200_000).fill(n % 256), n % 2 === 0)
  if (n === 1) process.stdout.write('writes\n')
}
