// What a shell starts: each program that a printed command may name is a stub that prints its name, its arguments and
// its input.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { tempDir } from './temp-dir.ts'

const PROGRAMS = ['helm', 'kubectl', 'skerry-agent']
const STUB =
  '#!/bin/sh\nprintf "%s\\0" "$(basename "$0")"\nfor one in "$@"; do printf "%s\\0" "$one"; done\nprintf "\\0"\ncase " $* " in *" - "*) cat ;; esac\n'

export function programsInShell(command: string): { program: string; args: string[]; input: string } {
  const bin = tempDir()
  for (const program of PROGRAMS) writeFileSync(join(bin, program), STUB, { mode: 0o755 })
  const ran = Bun.spawnSync(['sh', '-c', command], { env: { PATH: `${bin}:/usr/bin:/bin` } })
  const errors = ran.stderr.toString()
  if (errors !== '') throw new Error(errors)
  const [words = '', input = ''] = ran.stdout.toString().split('\0\0')
  const [program = '', ...args] = words.split('\0')
  return { program, args, input }
}
