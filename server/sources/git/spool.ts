// Stores the rest of a large answer while it waits for its turn: an unnamed file beside the source's folder, removed
// with the process.
import { mkdir, mkdtemp, open, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'

const PIECE_BYTES = 256 * 1024

export class Spool {
  private readonly file: Awaited<ReturnType<typeof open>>
  private size = 0

  private constructor(file: Spool['file']) {
    this.file = file
  }

  static async beside(path: string): Promise<Spool> {
    await mkdir(dirname(path), { recursive: true })
    const folder = await mkdtemp(`${path}.answer-`)
    try {
      return new Spool(await open(join(folder, 'rest'), 'wx+', 0o600))
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  }

  async add(bytes: Uint8Array): Promise<void> {
    for (let at = 0; at < bytes.byteLength; ) {
      const { bytesWritten } = await this.file.write(bytes, at, bytes.byteLength - at, this.size)
      at += bytesWritten
      this.size += bytesWritten
    }
  }

  async *all(): AsyncIterableIterator<Uint8Array> {
    for (let at = 0; at < this.size; ) {
      const { bytesRead, buffer } = await this.file.read(new Uint8Array(PIECE_BYTES), 0, PIECE_BYTES, at)
      if (bytesRead === 0) throw new Error('the file of an answer is incomplete')
      at += bytesRead
      yield buffer.subarray(0, bytesRead)
    }
  }

  close(): Promise<void> {
    return this.file.close()
  }
}
