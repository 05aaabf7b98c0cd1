// The complete commits of a folder, stored beside them with the packs of that time: a check costs no pack. A missing or
// torn pack makes the folder worthless.
import { mkdir, open, readdir, readFile, rename, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

/** `broken`: it was whole, and a pack of that time is not. */
export type WholeNote = 'whole' | 'broken' | 'none'

// Notes in `skerry-whole` are of packs with differences to others, and count no more.
const noteOf = (gitdir: string, commit: string): string => join(gitdir, 'skerry-complete', commit)
const packsOf = (gitdir: string): string => join(gitdir, 'objects', 'pack')

/** Once all of the commit is in the packs that are there now. */
export async function noteWhole(gitdir: string, commit: string): Promise<void> {
  const lines: string[] = []
  for (const name of (await readdir(packsOf(gitdir))).sort()) lines.push(`${(await stat(join(packsOf(gitdir), name))).size} ${name}\n`)
  await mkdir(noteOf(gitdir, ''), { recursive: true })
  await writeFile(noteOf(gitdir, commit), lines.join(''))
}

export async function readWhole(gitdir: string, commit: string): Promise<WholeNote> {
  const note = await readFile(noteOf(gitdir, commit), 'utf8').catch(() => null)
  if (note === null || note === '') return 'none'
  for (const line of note.trimEnd().split('\n')) {
    const [size = '', name = ''] = line.split(' ')
    const found = await stat(join(packsOf(gitdir), name)).catch(() => null)
    if (found?.size !== Number(size)) return 'broken'
  }
  return 'whole'
}

/** Writes a file whole: after a crash of the process or the machine, it holds the old bytes or these. */
export async function writeWhole(path: string, data: string | Uint8Array): Promise<void> {
  const file = await open(`${path}.new`, 'w')
  try {
    await file.writeFile(data)
    await file.sync()
  } finally {
    await file.close()
  }
  await rename(`${path}.new`, path)
}
