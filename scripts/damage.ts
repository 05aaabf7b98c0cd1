// Damages data folders by seeds and starts their programs on them. `scripts/damage --help` lists the options. Native
// code sees a damaged file in child processes only.
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { clusterIdSchema } from '../shared/runtime/ids.ts'
import { buildAgentFolders, buildServerFolders } from '../tests/sim/damage-folders.ts'
import { judge, type Outcome, type Plan, prepare, startOnce, TARGETS } from '../tests/sim/damage-history.ts'
import { linesOf } from './lines-of.ts'

const { values } = parseArgs({
  options: {
    histories: { type: 'string', default: '200' },
    seed: { type: 'string', default: '1' },
    processes: { type: 'string', default: '2' },
    json: { type: 'boolean', default: false },
    /** Folder in which the data folders of failed histories stay. */
    keep: { type: 'string' },
    /** Task of a child process: `build` or `play`. */
    child: { type: 'string' },
    /** Folder in which a child process works. */
    run: { type: 'string', default: '' },
  },
})
const [histories, firstSeed, processes] = [Number(values.histories), Number(values.seed), Number(values.processes)]
if (![histories, processes].every((n) => Number.isSafeInteger(n) && n >= 1) || !Number.isSafeInteger(firstSeed) || firstSeed < 0) {
  process.stderr.write('usage: scripts/damage [--histories N] [--seed S] [--processes N] [--keep DIR] [--json]\n')
  process.exit(2)
}

const templatesIn = (run: string) => join(run, 'templates')
const folderOf = (run: string, seed: number) => join(run, `seed-${seed}`)

/** One line of a child that plays: what it found out about a history. */
type Line = { seed: number } & ({ plan: Plan } | { outcome: Outcome })

async function build(run: string): Promise<void> {
  const dir = templatesIn(run)
  const clusters = await buildServerFolders(join(dir, 'server'))
  await buildAgentFolders(join(dir, 'agent'))
  writeFileSync(join(dir, 'clusters.json'), JSON.stringify(clusters))
}

/** A folder that is there is of a child that died at it: its plan stands, and the next start is due. */
async function play(run: string): Promise<void> {
  const clusters = clusterIdSchema.array().parse(JSON.parse(readFileSync(join(templatesIn(run), 'clusters.json'), 'utf8')))
  const print = (line: Line) => process.stdout.write(`${JSON.stringify(line)}\n`)
  for (let seed = firstSeed; seed < firstSeed + histories; seed++) {
    const dir = folderOf(run, seed)
    const planFile = join(dir, 'plan.json')
    const isFirst = !existsSync(planFile)
    const plan = isFirst ? prepare(seed, { dir: templatesIn(run), clusters }, dir) : (JSON.parse(readFileSync(planFile, 'utf8')) as Plan)
    writeFileSync(planFile, JSON.stringify(plan))
    print({ seed, plan })
    if (isFirst) print({ seed, outcome: await startOnce(plan, dir) })
    print({ seed, outcome: await startOnce(plan, dir) })
    process.chdir(run)
    Bun.gc(true) // connections of a start that failed
  }
}

interface History {
  plan: Plan
  outcomes: Outcome[]
  /** How its processes died. */
  deaths: string[]
}

/** A start takes a second or two. */
const SILENT_MS_MAX = 90_000

/** Plays seeds from `from` to before `to`; a child that dies is replaced, at the history at which it died. */
async function playInChildren(run: string, from: number, to: number, onDone: (history: History) => void): Promise<void> {
  let next = from
  let history: History | null = null
  const end = () => {
    if (history !== null) onDone(history)
    if (history !== null) next = history.plan.seed + 1
    history = null
  }
  while (next < to) {
    const args = ['--child', 'play', '--run', run, '--seed', String(next), '--histories', String(to - next)]
    const child = Bun.spawn([process.execPath, import.meta.path, ...args], { stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' })
    const stderr = new Response(child.stderr).text()
    let isHung = false
    const hung = () => {
      isHung = true
      child.kill('SIGKILL')
    }
    let watchdog = setTimeout(hung, SILENT_MS_MAX)
    for await (const line of linesOf(child.stdout)) {
      clearTimeout(watchdog)
      watchdog = setTimeout(hung, SILENT_MS_MAX)
      const told = JSON.parse(line) as Line
      if ('plan' in told) {
        if (history !== null && history.plan.seed !== told.seed) end()
        history ??= { plan: told.plan, outcomes: [], deaths: [] }
      } else history?.outcomes.push(told.outcome)
    }
    clearTimeout(watchdog)
    const code = await child.exited
    if (code === 0) {
      end()
      continue
    }
    const why = isHung
      ? `hangs for ${SILENT_MS_MAX} ms`
      : `${child.signalCode ?? `exit code ${code}`} ${(await stderr).trim().split('\n').slice(-6).join(' | ')}`
    if (history === null) throw new Error(`a child died before its first history: ${why}`)
    const died: History = history
    died.deaths.push(why)
    if (died.deaths.length + died.outcomes.length >= 2) end()
    else next = died.plan.seed
  }
}

function wrongOf({ plan, outcomes, deaths }: History): string[] {
  const [first, second] = outcomes
  const died = deaths.map((why) => `the process dies: ${why}`)
  if (deaths.length > 1) died.push('it dies at every start')
  if (first === undefined) return died
  return [...died, ...judge(plan, first, second ?? first)]
}

async function runAll(): Promise<number> {
  const base = existsSync('/dev/shm') ? '/dev/shm' : tmpdir()
  const run = mkdtempSync(join(base, 'skerry-damage-'))
  const startMs = performance.now()
  const counts = Object.fromEntries(TARGETS.map((target) => [target, { histories: 0, serves: 0, refuses: 0, dies: 0, wrong: 0 }]))
  const failures: string[] = []
  const onDone = (history: History) => {
    const { plan, outcomes, deaths } = history
    const wrong = wrongOf(history)
    const count = counts[plan.target]
    if (count !== undefined) {
      count.histories++
      if (deaths.length > 0) count.dies++
      else if (outcomes[0]?.kind === 'serves') count.serves++
      else count.refuses++
      if (wrong.length > 0) count.wrong++
    }
    const dir = folderOf(run, plan.seed)
    if (wrong.length > 0) {
      failures.push(`seed ${plan.seed}: ${plan.target}, ${plan.moment}, ${plan.what}\n  ${wrong.join('\n  ')}`)
      if (values.keep !== undefined) {
        mkdirSync(values.keep, { recursive: true })
        cpSync(dir, join(values.keep, `seed-${plan.seed}`), { recursive: true })
      }
    }
    rmSync(dir, { recursive: true, force: true })
  }
  try {
    const built = Bun.spawn([process.execPath, import.meta.path, '--child', 'build', '--run', run], {
      stdin: 'ignore',
      stdout: 'ignore',
      stderr: 'inherit',
    })
    if ((await built.exited) !== 0) throw new Error('the data folders cannot be built')
    const share = Math.ceil(histories / processes)
    const lanes = Array.from({ length: processes }, (_, lane) => {
      const from = firstSeed + lane * share
      return playInChildren(run, from, Math.min(from + share, firstSeed + histories), onDone)
    })
    await Promise.all(lanes)
  } finally {
    rmSync(run, { recursive: true, force: true })
  }
  const seconds = Math.round(performance.now() - startMs) / 1_000
  const summary = { histories, seed: firstSeed, seconds, failed: failures.length, counts, failures }
  const lines = [
    `${histories - failures.length} histories passed, ${failures.length} failed, ${seconds} s`,
    JSON.stringify(counts),
    ...failures,
  ]
  process.stdout.write(`${values.json ? JSON.stringify(summary) : lines.join('\n')}\n`)
  return failures.length === 0 ? 0 : 1
}

if (values.child === 'build') {
  await build(values.run)
  process.exit(0)
}
if (values.child === 'play') {
  await play(values.run)
  process.exit(0)
}
process.exit(await runAll())
