// Loaded before a run: breaks the source file of the mutation that is named in the environment, and fails when the text
// to break is no longer there.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ALSO, MUTATIONS, type MutationName } from './mutations.ts'

const name = process.env['SKERRY_SIM_MUTATION'] as MutationName | undefined
if (name !== undefined && name in MUTATIONS) {
  const mutation = MUTATIONS[name]
  const path = join(import.meta.dir, '../..', mutation.file)
  const changes = [mutation, ...(ALSO[name] === undefined ? [] : [ALSO[name]])]
  let contents = readFileSync(path, 'utf8')
  for (const { from, to } of changes) {
    if (contents.split(from).length !== 2) throw new Error(`${mutation.file} no longer holds this text exactly once: ${from}`)
    contents = contents.replace(from, () => to)
  }
  const filter = new RegExp(`${mutation.file.replaceAll('.', '\\.')}$`)
  Bun.plugin({ name: 'mutation', setup: (build) => void build.onLoad({ filter }, () => ({ contents, loader: 'ts' })) })
}
