// What `skerry backup create` is told about the fleet store is read as the server reads it: else a backup would lack a
// store that the server has in its folder.
import { expect, test } from 'bun:test'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { runBackupCreate } from '../../server/verbs/backup-verbs.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { naming } from '../support/naming.ts'
import { tempDir } from '../support/temp-dir.ts'

const dir = tempDir()

async function create(flags: Record<string, string>, env: Record<string, string> = {}): Promise<{ code: number; err: string }> {
  const told: string[] = []
  const io = { env, out: () => {}, err: (text: string) => void told.push(text), errIsTty: false, onStop: () => {}, clock: systemClock }
  const code = await runBackupCreate({ data: dir, to: join(dir, 'backup'), ...flags }, io)
  return { code, err: told.join('') }
}

test('BK6 ST17 what is no URL of a database, or has a password for everybody to see, is refused with 2', async () => {
  expect(await create({ store: 'sqlite' })).toMatchObject({ code: 2, err: expect.stringContaining('postgres://') })
  const { code, err } = await create({ store: 'postgres://u:hunter2@db/fleet' })
  expect([code, err.includes('other users of this machine'), err.includes('hunter2')]).toEqual([2, true, false])
  expect(await create({ storeFile: join(dir, 'none') })).toMatchObject({ code: 2, err: expect.stringContaining('ENOENT') })
})

test('BK6 an empty file of a URL means the file in the data folder, as for the server', async () => {
  writeFileSync(join(dir, 'url'), '\n')
  expect(await create({ storeFile: join(dir, 'url') })).toMatchObject({ code: 1, err: naming('no fleet store') })
  expect(existsSync(join(dir, 'backup'))).toBe(false)
})
