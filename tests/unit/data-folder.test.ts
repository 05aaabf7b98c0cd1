import { expect, test } from 'bun:test'
import { cpSync, mkdtempSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const open = (path: string, holdMs: number, says: 'folder' | 'place' = 'folder') =>
  Bun.spawn(
    [
      process.execPath,
      '-e',
      `import { openDataFolder } from ${JSON.stringify(join(import.meta.dir, '../../shared/adapters/data-folder.ts'))}
       try { const { place } = openDataFolder(${JSON.stringify(path)}); console.log(${says === 'place'} ? place : 'open ' + process.cwd()); await Bun.sleep(${holdMs}); process.exit() }
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
  const first = open(path, 60_000)
  expect(await firstLine(first)).toBe(`open ${path}`)
  expect(statSync(path).mode & 0o777).toBe(0o700)
  expect(await firstLine(open(path, 0))).toStartWith('data_locked')
  first.kill('SIGKILL')
  await first.exited
  expect(await firstLine(open(path, 0))).toBe(`open ${path}`)
})

test('SY5 a program that starts while somebody shortly looks into its folder waits for them', async () => {
  const path = join(mkdtempSync(join(tmpdir(), 'skerry-data-')), 'folder')
  const looking = open(path, 700)
  expect(await firstLine(looking)).toBe(`open ${path}`)
  expect(await firstLine(open(path, 0))).toBe(`open ${path}`)
})

test('a folder that cannot be made is named', async () => {
  expect(await firstLine(open('/proc/nowhere', 0))).toStartWith('data_unusable open the data folder: /proc/nowhere')
})

test('CM5 a data folder is the same place for each process that has it, and a copy of it is another', async () => {
  const path = join(mkdtempSync(join(tmpdir(), 'skerry-data-')), 'folder')
  // Ended: what is copied holds still.
  const placeOf = async (folder: string) => {
    const child = open(folder, 0, 'place')
    const place = await firstLine(child)
    await child.exited
    return place
  }
  const first = await placeOf(path)
  expect(first).toMatch(/^[0-9a-f]{32}$/)
  expect(await placeOf(path)).toBe(first)
  cpSync(path, `${path}-copy`, { recursive: true, preserveTimestamps: true })
  expect(await placeOf(`${path}-copy`)).not.toBe(first)
})
