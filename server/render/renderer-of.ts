// Which renderer a source is for and why, what was said to a renderer that has no part in it, and a folder that is not
// there. What is said and not heard is an error.
import { RENDERERS, type RendererName, type RenderSpec } from '../../shared/model/render.ts'
import type { Problem } from '../../shared/runtime/error.ts'
import { pathSegments, type SourceTree } from '../sources/source.ts'
import { KUSTOMIZATION_NAMES } from './kustomize/paths.ts'
import { templateName } from './liquid/files.ts'
import { nearestName } from './liquid/problems.ts'
import type { JobSource } from './renderer.ts'
import { optionsIn, RENDERER_OF, type WithOptions } from './renderer-options.ts'

const KUSTOMIZATIONS = [...KUSTOMIZATION_NAMES, ...KUSTOMIZATION_NAMES.map(templateName)]
export interface ChosenRenderer {
  renderer: RendererName
  /** The spec's choice of the renderer. Null if the folder decides. */
  said: string | null
  /** The file of the folder that decides it. Null means none. */
  file: string | null
  folder: string
  /** Why it may not render: code of the folder runs only for a spec that asks for it. */
  refusal?: string
}

/** RD1: the given type, else one by what the folder holds. */
export async function chooseRenderer({ type = 'auto', typescript, exec }: RenderSpec, { tree, root }: JobSource): Promise<ChosenRenderer> {
  const folder = root === '' ? '.' : root
  if (type !== 'auto') return { renderer: type, said: `type is ${type}`, file: null, folder }
  if (exec !== undefined) return { renderer: 'exec', said: `exec names the program ${exec.command}`, file: null, folder }
  const holds = async (name: string) => (await tree.id([...pathSegments(root), name].join('/'))) !== null
  const found = (renderer: RendererName, file: string | null) => ({ renderer, said: null, file, folder })
  if (await holds('Chart.yaml')) return found('helm', 'Chart.yaml')
  for (const name of KUSTOMIZATIONS) if (await holds(name)) return found('kustomize', name)
  const entry = typescript?.entry ?? 'main.ts'
  if (!(await holds(entry))) return found('raw', null)
  return typescript === undefined ? { ...found('typescript', entry), refusal: UNASKED } : found('typescript', entry)
}

const UNASKED =
  'code runs only if the service requests it; set render.type to typescript to run this file, or to raw to render the YAML files alone'

/** RD5: `from` is where the spec has it; `chosen` of all sources that it is for. */
export function unheardOptions(render: RenderSpec, from: string, chosen: readonly ChosenRenderer[]): Problem[] {
  const unheard = optionsIn(render).filter((name) => !chosen.some(({ renderer }) => renderer === RENDERER_OF[name]))
  return unheard.map((name) => ({ path: `${from}.${name}`, message: whyNot(name, chosen, render.typescript?.entry) }))
}

/** RD5, of what overrides say to helm. */
export function unheardOverrides(layers: ReadonlyArray<{ from: string }>, chosen: readonly ChosenRenderer[]): Problem[] {
  return chosen.some(({ renderer }) => renderer === 'helm')
    ? []
    : layers.map(({ from }) => ({ path: `${from}.helm`, message: whyNot('helm', chosen) }))
}

const SOURCES_TOLD = 5

function whyNot(name: WithOptions, chosen: readonly ChosenRenderer[], entry = 'main.ts'): string {
  if (chosen.length === 0) return 'every source has its own render, or provides files only'
  const lacking = { directory: 'manifests alone', helm: 'Chart.yaml', kustomize: 'kustomization.yaml', typescript: entry, exec: 'program' }[
    name
  ]
  const reasons = chosen.map(({ renderer, said, file, folder }) => {
    if (said !== null) return `${said}, so ${folder} is rendered as ${renderer}`
    const isLower = name !== 'directory' && file !== null && RENDERERS.indexOf(renderer) > RENDERERS.indexOf(name)
    const held = file === null ? `no ${lacking}` : isLower ? `${file} and no ${lacking}` : file
    return `${folder} holds ${held}, so it is rendered as ${renderer}`
  })
  return [...new Set(reasons)].slice(0, SOURCES_TOLD).join('; ')
}

const NAMES_TOLD = 8

/** RN3: what to say of a folder that is not there. Null means that it is. `at`: which commit or version. */
export async function missingFolder({ tree, root }: JobSource, at: string): Promise<string | null> {
  const segments = pathSegments(root)
  if (segments.length === 0 || (await tree.list(root)) !== null) return null
  if ((await tree.id(root)) !== null) return `${root} is a file at ${at}; expected its folder`
  return `folder ${root} does not exist at ${at}${await nearFolder(tree, segments)}`
}

async function nearFolder(tree: SourceTree, segments: readonly string[]): Promise<string> {
  for (const [depth, wrong] of segments.entries()) {
    const parent = segments.slice(0, depth).join('/')
    const folders = ((await tree.list(parent)) ?? []).filter(({ kind }) => kind !== 'file').map(({ name }) => name)
    if (folders.includes(wrong)) continue
    const near = nearestName(wrong, folders)
    if (near !== null) return `; did you mean ${[...segments.slice(0, depth), near, ...segments.slice(depth + 1)].join('/')}?`
    const more = folders.length > NAMES_TOLD ? `, and ${folders.length - NAMES_TOLD} more` : ''
    return folders.length === 0
      ? ''
      : `; folders in ${parent === '' ? 'its root' : parent}: ${folders.slice(0, NAMES_TOLD).join(', ')}${more}`
  }
  return ''
}
