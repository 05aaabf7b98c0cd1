// SB12: with what the server would render: each program with its version, and whether the sandbox works for it. Runs
// each once, away from the data folder.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Clock } from '../../shared/runtime/clock.ts'
import { describeError } from '../../shared/runtime/loop.ts'
import { type RenderPlace, renderLacks } from '../control/render-place.ts'
import { createSandbox, type RunningSandbox, sandboxTrouble } from '../render/sandbox/runs.ts'
import type { Findings } from './findings.ts'

export async function checkRender(place: RenderPlace, dataDir: string, findings: Findings, clock: Clock): Promise<void> {
  const dir = temporaryFolder(dataDir)
  const own = { ownBinary: process.execPath, bunVersion: Bun.version, folder: join(dir, 'render'), slots: 1 }
  const sandbox = createSandbox({ ...place, ...own }, clock)
  try {
    findings.fact('renderSandbox', place.mode)
    const trouble = place.mode === 'limits' ? null : await sandboxTrouble(sandbox)
    if (place.mode === 'limits') findings.tell('sandbox_off', '--render-sandbox limits')
    const onlyScripts = trouble !== null && /mount proc/.test(trouble)
    if (trouble !== null) findings.tell(onlyScripts ? 'sandbox_no_proc' : 'sandbox_broken', trouble)
    if (trouble === null || onlyScripts)
      for (const program of ['helm', 'helm3', 'kustomize'] as const) await checkProgram(sandbox, program, findings)
    else
      for (const { program, without } of renderLacks(place))
        if (['helm', 'helm3', 'kustomize'].includes(program)) findings.tell('program_missing', `${program}: ${without}`)
    for (const name of place.programs.renderers.keys()) await checkRenderer(sandbox, name, findings)
    for (const [name, argument] of [
      ['git', '--version'],
      ['ssh', '-V'],
    ] as const)
      await checkTool(name, argument, place, findings)
  } finally {
    await sandbox.close()
    rmSync(dir, { recursive: true, force: true })
  }
}

/** An image without a /tmp has one writable folder; it is left as it was. */
function temporaryFolder(dataDir: string): string {
  try {
    return mkdtempSync(join(tmpdir(), 'skerry-doctor-'))
  } catch {
    return mkdtempSync(join(dataDir, 'skerry-doctor-'))
  }
}

async function checkProgram(sandbox: RunningSandbox, program: 'helm' | 'helm3' | 'kustomize', findings: Findings): Promise<void> {
  try {
    const version = await sandbox.version(program)
    if (version === null) findings.tell('program_missing', `${program}: services that need it are not rendered`)
    else findings.fact(program, version)
  } catch (error) {
    findings.tell('program_missing', `${program}: ${describeError(error)}`)
  }
}

async function checkRenderer(sandbox: RunningSandbox, name: string, findings: Findings): Promise<void> {
  try {
    const version = await sandbox.version({ exec: name })
    if (version === null) findings.tell('program_missing', `${name} of --renderers`)
    else findings.fact(`renderer ${name}`, version)
  } catch (error) {
    findings.tell('program_missing', `${name} of --renderers: ${describeError(error)}`)
  }
}

/** For repositories over ssh, partial clones and large ones. */
async function checkTool(name: string, argument: string, { programs }: RenderPlace, findings: Findings): Promise<void> {
  const path = Bun.which(name, { PATH: programs.searchPath.join(':') })
  if (path === null) {
    findings.tell('program_missing', `${name}: repositories over ssh are not read`)
    return
  }
  const child = Bun.spawn([path, argument], { env: {}, stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' })
  const [out, err] = await Promise.all([Bun.readableStreamToText(child.stdout), Bun.readableStreamToText(child.stderr), child.exited])
  findings.fact(name, (out || err).trim().split('\n')[0]?.slice(0, 100) ?? '')
}
