// A folder of this machine as an archive for the server: the files that a commit of it would have.
import { stat } from 'node:fs/promises'
import { ARCHIVE_TEXT_MAX } from '../../shared/model/diff-views.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { createFolderTree } from '../sources/folder-tree.ts'

/** Installed packages are in no repository. */
const SKIPPED = /(^|\/)node_modules\/$/
const MIB = 1024 * 1024

/** Returns base64 of a compressed tar archive. Links inside the folder become what they lead to. */
export async function packFolder(path: string): Promise<string> {
  const found = await stat(path).catch(() => null)
  if (found?.isDirectory() !== true)
    throw new AppError('not_found', {
      detail: `folder ${path} does not exist`,
      remedy: 'Correct --dir: the root folder of the repository.',
    })
  const files = await createFolderTree(path).files('', (name) => !SKIPPED.test(name))
  const packed = await new Bun.Archive(Object.fromEntries([...files].map(([name, { bytes }]) => [name, bytes])), {
    compress: 'gzip',
  }).bytes()
  const text = packed.toBase64()
  if (text.length > ARCHIVE_TEXT_MAX)
    throw new AppError('too_large', {
      detail: `the folder ${path} is ${Math.ceil(packed.byteLength / MIB)} MiB compressed, more than ${Math.floor((ARCHIVE_TEXT_MAX * 3) / 4 / MIB)}`,
      remedy: 'Push the change to a branch and compare that with --ref BRANCH.',
    })
  return text
}
