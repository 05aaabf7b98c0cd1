// Git keeps what every Source keeps to, by the library and by the program.
import { afterEach, describe, setDefaultTimeout } from 'bun:test'
import { createGitKit, GIT_WAYS, type GitKit, sshIsThere } from '../support/git-source-kit.ts'
import { describeSource } from './source.contract.ts'

setDefaultTimeout(60_000)
const kits: GitKit[] = []
afterEach(async () => {
  for (const kit of kits.splice(0)) await kit.close()
})

for (const way of GIT_WAYS)
  describe.skipIf(way === 'git over ssh' && !sshIsThere)(way, () => {
    describeSource(async () => {
      const kit = await createGitKit(way)
      kits.push(kit)
      const dir = kit.newDir()
      return {
        open: () => kit.open({ dir }),
        pick: { path: './deploy/' },
        path: 'value.txt',
        publish: async (value) => {
          await kit.server.commit({ 'deploy/value.txt': value, 'deploy/more/a.yaml': 'a: 1', 'other.txt': value }, `to ${value}`)
        },
        away: (isAway) => kit.setDown(isAway),
        requests: () => kit.requests.splice(0).length,
      }
    })
  })
