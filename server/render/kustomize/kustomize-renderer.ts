// The renderer for kustomizations: the real `kustomize build` in the sandbox, with exactly the files that the
// kustomization names.
import { createHash } from 'node:crypto'
import type { Problem } from '../../../shared/runtime/error.ts'
import { AppError } from '../../../shared/runtime/error.ts'
import { askProgram, ProgramStopped } from '../program-answer.ts'
import { allOfInputs, type Renderer, type RendererResult, type RenderJob } from '../renderer.ts'
import { treePath } from '../tree-path.ts'
import { decodeUtf8 } from '../utf8.ts'
import { editKustomization, hasAdditions, type KustomizeAdditions, originIn } from './edit.ts'
import { type Built, byTemplates, kustomizationOf, missingFile, problemsOf, TREE_FOLDER, warningsOf } from './errors.ts'
import { type KustomizeFiles, type ScanJob, scanKustomization } from './scan.ts'

export const renderKustomize: Renderer = async (job) => {
  const { spec, source, inputs, meter } = job
  const options = { ...spec.kustomize, origins: job.wantsFiles }
  const root = treePath('', source.root) ?? ''
  const scanJob: ScanJob = {
    ...{ inputs, meter, source, templated: spec.templated === true },
    ...{ helmCharts: options.helmCharts === true, remoteBases: options.remoteBases === true },
    ...(job.bases === undefined ? {} : { bases: job.bases }),
    ...(job.openSops === undefined ? {} : { openSops: job.openSops }),
  }
  const scanned = await scanKustomization(scanJob, { folders: options.components ?? [] })
  const { templates, remote } = scanned
  if (scanned.problems.length > 0) return { kind: 'failed', problems: remote.told(byTemplates(scanned.problems, templates)) }
  const built = edited({ files: remote.rewritten(scanned.files), root }, options)
  const args = argsOf(job, scanned)
  const outcome = await build(job, args, built)
  const shown = (path: string) => remote.told(byTemplates([{ path, message: '' }], templates))[0]?.path ?? path
  if (outcome.kind === 'built') return rendered(outcome, built, shown)
  const missed = outcome.kind === 'refused' ? missingFile(outcome.stderr) : null
  const more = missed === null ? null : await withWholeTree(job, built)
  const again = more === null ? null : await build(job, args, more)
  if (again?.kind === 'built' && more !== null) return rendered(again, more, shown)
  const last = again ?? outcome
  const problems = last.kind === 'refused' ? problemsOf(last.stderr, built) : [stopped(last, built)]
  return allOfInputs(remote.told(byTemplates(problems, templates)))
}

/** KU6: writes options of the service as `kustomize edit` does. */
function edited(built: Built, options: KustomizeAdditions): Built {
  if (!hasAdditions(options)) return built
  const path = kustomizationOf(built.root, built.files)
  const text = decodeUtf8(built.files.get(path) ?? new Uint8Array())
  const edit = text === null ? null : editKustomization(text, options)
  return edit === null ? built : { ...built, files: new Map([...built.files, [path, new TextEncoder().encode(edit)]]) }
}

function argsOf({ inputs }: RenderJob, { charts }: KustomizeFiles): string[] {
  if (!charts) return ['build', '.']
  const facts = inputs.cluster?.facts
  const version = facts?.kubernetesVersion ?? ''
  const apis = facts === undefined ? [] : Object.keys(facts.apiVersions).sort()
  return [
    ...['build', '.', '--enable-helm'],
    ...(version === '' ? [] : ['--helm-kube-version', version]),
    ...apis.flatMap((api) => ['--helm-api-versions', api]),
  ]
}

type Outcome =
  | { kind: 'built'; stdout: Uint8Array; stderr: string }
  | { kind: 'refused'; stderr: string }
  | { kind: 'stopped'; message: string }

async function build(job: RenderJob, args: readonly string[], { files, root }: Built): Promise<Outcome> {
  const version = await job.sandbox.version('kustomize')
  const parts = ['kustomize', version ?? '', args.includes('--enable-helm') ? ((await job.sandbox.version('helm')) ?? '') : '', ...args]
  const answer = await askProgram(job, [...parts, root, filesDigest(files)], async () => {
    const outcome = await job.sandbox.run(
      {
        program: 'kustomize',
        args,
        files: new Map([...files].map(([path, bytes]) => [`${TREE_FOLDER}/${path}`, bytes])),
        cwd: root === '' ? TREE_FOLDER : `${TREE_FOLDER}/${root}`,
        env: LESS_COLLECTING,
      },
      job.signal,
    )
    if (outcome.kind === 'stopped') throw new ProgramStopped(outcome)
    return { failed: outcome.exitCode !== 0, notes: outcome.stderr, output: outcome.stdout }
  })
  if ('kind' in answer) return answer
  const { failed, notes, output } = answer
  return failed ? { kind: 'refused', stderr: notes } : { kind: 'built', stdout: output, stderr: notes }
}

/** It lives for 30 ms: with the usual setting it collects six times, with this twice. With a higher one it takes longer
 *  again, for memory that it never had before. */
const LESS_COLLECTING = { GOGC: '200' }

function filesDigest(files: Built['files']): string {
  const digest = createHash('sha256')
  for (const [path, bytes] of [...files].sort(([a], [b]) => (a < b ? -1 : 1))) {
    digest.update(`${path.length} ${path} ${bytes.byteLength}\0`)
    digest.update(bytes)
  }
  return digest.digest('hex')
}

/**
 * Renders with the whole tree, for files that the scan did not find. Null if the tree is too large to be handed over.
 */
async function withWholeTree(job: RenderJob, built: Built): Promise<Built | null> {
  try {
    const all = await job.source.tree.files('', (path) => !path.startsWith('.git/'))
    const files = new Map([...all].map(([path, { bytes }]): [string, Uint8Array] => [path, bytes]))
    for (const [path, bytes] of built.files) files.set(path, bytes)
    return { ...built, files }
  } catch (error) {
    if (error instanceof AppError && error.code === 'source_refused') return null
    throw error
  }
}

const OUTPUT_NAME = 'kustomize-build.yaml'

/** `shown`: a path of the build as people know it. */
const rendered = (
  { stdout, stderr }: Extract<Outcome, { kind: 'built' }>,
  built: Built,
  shown: (path: string) => string,
): RendererResult => ({
  kind: 'rendered',
  files: new Map([[OUTPUT_NAME, stdout]]),
  warnings: warningsOf(stderr, built),
  originals: new Map([...built.files].filter(([, bytes]) => Buffer.from(bytes).includes('ENC[AES256_GCM,'))),
  fileOf: (_, object) => shown(originIn(object, built.root) ?? kustomizationOf(built.root, built.files)),
})

const stopped = (outcome: Outcome, { root, files }: Built): Problem => ({
  path: kustomizationOf(root, files),
  message: `kustomize build: ${outcome.kind === 'stopped' ? outcome.message : 'failed'}`,
})
