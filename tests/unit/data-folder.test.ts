import { expect, test } from 'bun:test'
import { mkdtempSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const open = (path: string, hold: boolean) =>
  Bun.spawn(
    [
      process.execPath,
      '-e',
      `import { openDataFolder } from ${JSON.stringify(join(import.meta.dir, '../../shared/adapters/data-folder.ts'))}
       try { openDataFolder(${JSON.stringify(path)}); console.log('open ' + process.cwd()); ${hold ? 'await Bun.sleep(60_000)' : ''} }
       catch (error) { console.log(error.code + ' ' + error.message) }`,
    ],
    { stdout: 'pipe', stderr: 'inherit' },
  )

const firstLine = async (child: Bun.Subprocess<'ignore', 'pipe', 'inherit'>): Promise<string> => {
  const reader = child.stdout.getReader()
  const { value } = await reader.read()
  return new TextDecoder().decode(value).trim()
}

test('a data folder belongs to one process, and a killed process gives it back', async () => {
  const path = join(mkdtempSync(join(tmpdir(), 'skerry-data-')), 'new', 'folder')
  const first = open(path, true)
  expect(await firstLine(first)).toBe(`open ${path}`)
  expect(statSync(path).mode & 0o777).toBe(0o700)
  expect(await firstLine(open(path, false))).toStartWith('data_locked')
  first.kill('SIGKILL')
  await first.exited
  expect(await firstLine(open(path, false))).toBe(`open ${path}`)
})

test('a folder that cannot be made is named', async () => {
  expect(await firstLine(open('/proc/nowhere', false))).toStartWith('data_unusable open the data folder: /proc/nowhere')
})
