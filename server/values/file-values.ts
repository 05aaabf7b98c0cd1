// Values in files of the server's machine, such as a mounted volume. Each project has a folder of its own there.
import { open, realpath } from 'node:fs/promises'
import { join, sep } from 'node:path'
import { checkedValue, VALUE_LENGTH_MAX, ValueError, type ValueReader } from './value-source.ts'

/** `folder`: of `--value-files`. */
export function createFileValues(folder: string): ValueReader {
  return {
    async read({ project }, sources) {
      const read = new Map<string, ReturnType<typeof checkedValue>>()
      for (const { name, file } of sources)
        if (file !== undefined)
          read.set(name, await readFile(join(folder, project), file).catch((error: unknown) => failureOf(error, file)))
      return read
    },
  }
}

/** A mounted Secret has links inside its own folder; a link out of it is refused. */
async function readFile(folder: string, path: string) {
  const root = await realpath(folder)
  const real = await realpath(join(root, path))
  if (!real.startsWith(root + sep)) return new ValueError(`file ${path} is a link out of the folder of the project`)
  const file = await open(real, 'r')
  try {
    const { size, mtimeMs } = await file.stat()
    if (size > VALUE_LENGTH_MAX * 4) return new ValueError(`file ${path} has more than ${VALUE_LENGTH_MAX} characters`)
    const bytes = await file.readFile()
    const text = bytes.toString('utf8')
    if (!Buffer.from(text, 'utf8').equals(bytes)) return new ValueError(`file ${path} is not UTF-8 text`)
    return checkedValue(text.replace(/\r?\n$/, ''), String(Math.floor(mtimeMs)))
  } finally {
    await file.close()
  }
}

function failureOf(error: unknown, path: string): ValueError {
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error'
  return new ValueError(
    code === 'ENOENT' ? `file ${path} does not exist in the folder of the project` : `cannot read file ${path}: ${code}`,
  )
}
