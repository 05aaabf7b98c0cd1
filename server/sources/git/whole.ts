// Which commits are whole in a folder, noted beside them with the packs that were there: a look at it costs no pack. A pack that is gone or torn makes the note worthless.
import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

const noteOf = (gitdir: string, commit: string): string => join(gitdir, 'skerry-whole', commit)
const packsOf = (gitdir: string): string => join(gitdir, 'objects', 'pack')

export async function noteWhole(gitdir: string, commit: string): Promise<void> {
  const lines: string[] = []
  for (const name of (await readdir(packsOf(gitdir))).sort()) lines.push(`${(await stat(join(packsOf(gitdir), name))).size} ${name}\n`)
  await mkdir(noteOf(gitdir, ''), { recursive: true })
  await writeFile(noteOf(gitdir, commit), lines.join(''))
}

export async function isNotedWhole(gitdir: string, commit: string): Promise<boolean> {
  const note = await readFile(noteOf(gitdir, commit), 'utf8').catch(() => null)
  if (note === null || note === '') return false
  for (const line of note.trimEnd().split('\n')) {
    const [size = '', name = ''] = line.split(' ')
    const found = await stat(join(packsOf(gitdir), name)).catch(() => null)
    if (found?.size !== Number(size)) return false
  }
  return true
}
