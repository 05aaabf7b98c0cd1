// A file's content, or a folder's names, on the disk and not only in the kernel: what a rename relies on after a power
// loss.
import { closeSync, fsyncSync, openSync } from 'node:fs'

export function syncPath(path: string): void {
  const fd = openSync(path, 'r')
  try {
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
}
