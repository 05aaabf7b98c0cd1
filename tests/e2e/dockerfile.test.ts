// There is no Docker here, so the images are checked by what they would hold: the files of the final stage's COPY lines and nothing else, as
// the user it names, with one writable folder.
import { expect, test } from 'bun:test'
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { packageVersion, parseVersion, plantTraps, runInSandbox } from '../../scripts/binary-sandbox.ts'

const ROOT = join(import.meta.dir, '..', '..')

interface FinalStage {
  base: string
  user: string
  workdir: string
  entrypoint: string[]
  cmd: string[]
  /** Where in the image → which path of the build stage. */
  copies: Record<string, string>
}

function finalStage(file: string): FinalStage {
  const lines = readFileSync(join(ROOT, file), 'utf8').split('\n')
  const start = lines.findLastIndex((line) => line.startsWith('FROM '))
  const value = (word: string) =>
    lines
      .slice(start)
      .find((line) => line.startsWith(`${word} `))
      ?.slice(word.length + 1) ?? ''
  const copies: Record<string, string> = {}
  for (const line of lines.slice(start)) {
    const copy = /^COPY --from=build (?:--chown=\S+ )?(\S+) (\S+)$/.exec(line)
    if (copy?.[1] && copy[2]) copies[copy[2]] = copy[1]
    else if (/^(COPY|ADD|RUN)\b/.test(line)) throw new Error(`${file}: a line that this test does not understand: ${line}`)
  }
  const list = (word: string) => JSON.parse(value(word)) as string[]
  return { base: value('FROM'), user: value('USER'), workdir: value('WORKDIR'), entrypoint: list('ENTRYPOINT'), cmd: list('CMD'), copies }
}

/** The build stage is Debian 12 with the clone under /src; so is, but for the folder, this machine. */
const here = (path: string): string => (path.startsWith('/src/') ? join(ROOT, path.slice('/src/'.length)) : path)

test.each([
  ['Dockerfile.server', 'skerry'],
  ['Dockerfile.agent', 'skerry-agent'],
])(
  '%s: what the final stage copies is enough to run %s as 65532 on a read-only root',
  async (file, binary) => {
    const stage = finalStage(file)
    expect(stage).toMatchObject({ base: 'scratch', user: '65532:65532', workdir: '/data', entrypoint: [`/usr/bin/${binary}`] })
    const { '/data': data, ...copies } = stage.copies
    expect(data).toBe('/empty')
    const files = Object.fromEntries(Object.entries(copies).map(([inside, from]) => [inside, here(from)]))
    for (const path of Object.values(files)) expect(existsSync(path) || `${path} is missing; run scripts/build`).toBe(true)

    const dataDir = mkdtempSync(join(tmpdir(), 'image-'))
    chmodSync(dataDir, 0o777)
    try {
      await plantTraps(dataDir)
      const run = (...args: string[]) => runInSandbox({ files, dataDir, command: [...stage.entrypoint, ...args] })
      expect(parseVersion(await run('--version', '-o', 'json'))).toMatchObject({ version: packageVersion() })
      // What CMD says is known to the binary: its first word is a command, its flags are flags of it.
      const help = await run(stage.cmd[0] ?? '', '--help')
      for (const flag of stage.cmd.filter((word) => word.startsWith('--'))) expect(help.stdout).toContain(flag)
    } finally {
      rmSync(dataDir, { recursive: true, force: true })
    }
  },
  60_000,
)
