// There is no Docker here, so the images are checked by what they would hold: the files of the final stage's COPY lines
// and nothing else, as the user it names, with one writable folder.
import { expect, test } from 'bun:test'
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { packageVersion, parseVersion, plantTraps, runInSandbox } from '../../scripts/binary-sandbox.ts'
import { doctorReportSchema } from '../../server/doctor/findings.ts'
import { fillDataFolder } from '../support/data-folder-kit.ts'
import { renderProgram, searchPath } from '../support/render-programs.ts'
import { tempDir } from '../support/temp-dir.ts'

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

/** What scripts/image-root makes. */
const DEBIAN = '/root-of-image/'
let debianRoot: string | null = null
/** Where in the image → which file here: this machine is the same Debian. */
function debianFiles(): Record<string, string> {
  if (debianRoot === null) {
    debianRoot = tempDir()
    const made = Bun.spawnSync([join(ROOT, 'scripts/image-root'), debianRoot], { env: { PATH: searchPath().join(':') } })
    if (!made.success) throw new Error(made.stderr.toString())
  }
  const files = [...new Bun.Glob('**').scanSync({ cwd: debianRoot, onlyFiles: true, followSymlinks: false, dot: true })]
  return Object.fromEntries(files.map((path) => [`/${path}`, join(debianRoot ?? '', path)]))
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
    const copy = /^COPY --from=(?:build|programs) (?:--chown=\S+ )?(\S+) (\S+)$/.exec(line)
    if (copy?.[1] === DEBIAN && copy[2] === '/') Object.assign(copies, debianFiles())
    else if (copy?.[1] && copy[2]) copies[copy[2]] = copy[1]
    else if (/^(COPY|ADD|RUN)\b/.test(line)) throw new Error(`${file}: a line that this test does not understand: ${line}`)
  }
  const list = (word: string) => JSON.parse(value(word)) as string[]
  return { base: value('FROM'), user: value('USER'), workdir: value('WORKDIR'), entrypoint: list('ENTRYPOINT'), cmd: list('CMD'), copies }
}

/** The build stage is Debian 12 with the clone under /src; so is, but for the folder, this machine. */
function here(path: string): string {
  if (path === '/empty') return tempDir()
  if (path.startsWith('/src/')) return join(ROOT, path.slice('/src/'.length))
  return path.startsWith('/out/') ? realpathSync(renderProgram(path.slice('/out/'.length) as 'helm')) : path
}

const IMAGES = [
  ['Dockerfile.server', 'skerry'],
  ['Dockerfile.agent', 'skerry-agent'],
] as const

async function withDataDir<T>(use: (dataDir: string) => Promise<T>): Promise<T> {
  const dataDir = mkdtempSync(join(tmpdir(), 'image-'))
  chmodSync(dataDir, 0o777)
  try {
    return await use(dataDir)
  } finally {
    rmSync(dataDir, { recursive: true, force: true })
  }
}

/** Runs the image's entry point in a root of just its files. */
function runImage({ copies, entrypoint }: FinalStage, dataDir: string, ...args: string[]) {
  const { '/data': data, ...rest } = copies
  expect(data).toBe('/empty')
  const files = Object.fromEntries(Object.entries(rest).map(([inside, from]) => [inside, here(from)]))
  for (const path of Object.values(files)) expect(existsSync(path) || `${path} is missing; run scripts/build`).toBe(true)
  return runInSandbox({ files, dataDir, command: [...entrypoint, ...args], devices: true })
}

test.each(IMAGES)('BI1 BI3 BI4 %s: what the final stage copies is enough to run %s as 65532 on a read-only root', async (file, binary) => {
  const stage = finalStage(file)
  expect(stage).toMatchObject({ base: 'scratch', user: '65532:65532', workdir: '/data', entrypoint: [`/usr/bin/${binary}`] })
  await withDataDir(async (dataDir) => {
    const facts = parseVersion(await runImage(stage, dataDir, '--version', '-o', 'json'))
    expect(Object.keys(facts).sort()).toEqual(['bun', 'commit', 'crSqlite', 'protocol', 'sqlite', 'version'])
    expect(facts).toMatchObject({ version: packageVersion(), bun: Bun.version })
    expect(readdirSync(dataDir)).toEqual([])
  })
})

test.each(IMAGES)('%s: the flags of its CMD are known to %s', async (file) => {
  const stage = finalStage(file)
  const help = await withDataDir((dataDir) => runImage(stage, dataDir, stage.cmd[0] ?? '', '--help'))
  for (const flag of stage.cmd.filter((word) => word.startsWith('--'))) expect(help.stdout).toContain(flag)
})

test.each(IMAGES)('BI2 %s: %s ignores a .env and a bunfig.toml in its working directory', async (file) => {
  await withDataDir(async (dataDir) => {
    await plantTraps(dataDir)
    const bun = Bun.spawnSync([process.execPath, '-e', '0'], { cwd: dataDir })
    expect(bun.stdout.toString()).toBe('trap sprung') // the trap works on whoever reads it
    const result = await runImage(finalStage(file), dataDir, '--version', '-o', 'json')
    expect(result.stdout).not.toContain('trap')
    expect(parseVersion(result)['version']).toBe(packageVersion())
  })
})

test('SB1 SB12 Dockerfile.server: helm, helm 3 and kustomize run inside the image, in a sandbox inside of it', async () => {
  await withDataDir(async (dataDir) => {
    await fillDataFolder(join(dataDir, 'data'))
    const ran = await runImage(finalStage('Dockerfile.server'), dataDir, 'doctor', '--data', '/data/data', '-o', 'json')
    const report = doctorReportSchema.parse(JSON.parse(ran.stdout || JSON.stringify(ran)))
    // A sandbox in a sandbox may have no /proc of its own, as in most containers: charts need none.
    expect(report.findings.map(({ code }) => code).filter((code) => code.startsWith('sandbox'))).toEqual(['sandbox_no_proc'])
    expect(report.facts).toMatchObject({
      renderSandbox: 'bubblewrap',
      helm: expect.stringMatching(/^helm 4\./),
      helm3: expect.stringMatching(/^helm 3\./),
      kustomize: expect.stringMatching(/^kustomize 5\./),
    })
  })
})
