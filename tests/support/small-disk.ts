// A file system that is soon full. Mounting one needs root; without it the tests that ask for one are skipped, aloud.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface SmallDisk {
  path: string
  /** Writes until nothing more fits, not a byte. */
  fill(): void
  /** Gives back what `fill` took. */
  free(): void
  remove(): void
}

export const canMountSmallDisk = process.getuid?.() === 0 && Bun.which('mount') !== null

export function mountSmallDisk(megabytes: number): SmallDisk {
  const path = mkdtempSync(join(tmpdir(), 'skerry-small-disk-'))
  const run = (...command: string[]) => {
    const { exitCode, stderr } = Bun.spawnSync(command)
    if (exitCode !== 0) throw new Error(`${command.join(' ')}: ${stderr.toString()}`)
  }
  run('mount', '-t', 'tmpfs', '-o', `size=${megabytes}m,mode=0700`, 'tmpfs', path)
  const ballast: string[] = []
  return {
    path,
    fill: () => {
      for (const size of [1_048_576, 65_536, 4_096]) {
        for (;;) {
          const file = join(path, `ballast-${ballast.length}`)
          ballast.push(file)
          try {
            writeFileSync(file, new Uint8Array(size))
          } catch {
            break
          }
        }
      }
    },
    free: () => {
      for (const file of ballast.splice(0)) rmSync(file, { force: true })
    },
    remove: () => {
      run('umount', '--lazy', path)
      rmSync(path, { recursive: true, force: true })
    },
  }
}
