// Called by scripts/build --check: each binary says its version in a root that holds nothing else, from a folder full
// of traps.
import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { TRIAL_VERB } from '../shared/runtime/build-info.ts'
import { LIBC_FILES, packageVersion, parseVersion, plantTraps, runInSandbox } from './binary-sandbox.ts'

for (const name of ['skerry', 'skerry-agent']) {
  const dataDir = mkdtempSync(join(tmpdir(), 'binary-check-'))
  chmodSync(dataDir, 0o777)
  try {
    await plantTraps(dataDir)
    const files = { ...LIBC_FILES, [`/${name}`]: join(import.meta.dir, '..', 'dist', name) }
    const facts = parseVersion(await runInSandbox({ files, dataDir, command: [`/${name}`, '--version', '-o', 'json'] }))
    if (facts['version'] !== packageVersion()) throw new Error(`${name} says version ${facts['version']}, package.json ${packageVersion()}`)
    const trial = await runInSandbox({ files, dataDir, command: [`/${name}`, TRIAL_VERB, '/data/lib', '/data/trial.db'] })
    if (trial.stdout !== 'ok\n') throw new Error(`${name} cannot try a file as a child of itself: ${JSON.stringify(trial)}`)
    process.stdout.write(`build: ${name} runs on a read-only root as uid 65532: ${JSON.stringify(facts)}\n`)
  } finally {
    rmSync(dataDir, { recursive: true, force: true })
  }
}
