// Finds the parts of programs and images on this machine: npm packages by the bundler, crates by the lock file, Go
// modules by the program itself, Debian packages by dpkg.
import { existsSync, readdirSync, readFileSync, realpathSync } from 'node:fs'
import { homedir } from 'node:os'
import { basename, join } from 'node:path'
import { licenseOfText, type Part } from './part.ts'

const ROOT = join(import.meta.dir, '..', '..')
const read = (path: string): string | null => (existsSync(path) ? readFileSync(path, 'utf8') : null)
const textIn = (folder: string): string | null => {
  if (!existsSync(folder)) return null
  const name = readdirSync(folder).sort().find((one) => /^(licen[cs]e|copying)/i.test(one)) // biome-ignore format: short
  return name === undefined || !/^[\w.-]+$/.test(name) ? null : read(join(folder, name))
}

/** The npm packages of which the bundle of these entry points has at least one byte. */
export async function npmParts(entrypoints: readonly string[]): Promise<Part[]> {
  const built = await Bun.build({
    ...{
      entrypoints: entrypoints.map((path) => join(ROOT, path)),
      root: ROOT,
      target: 'bun',
      format: 'esm',
      splitting: true,
      minify: true,
      metafile: true,
    },
    define: { SKERRY_VERSION: '""', SKERRY_COMMIT: '""' },
  })
  if (!built.success || built.metafile === undefined) throw new Error(`cannot bundle ${entrypoints.join(', ')}: ${built.logs.join('\n')}`)
  const folders = new Set<string>()
  for (const { inputs } of Object.values(built.metafile.outputs))
    for (const [path, { bytesInOutput }] of Object.entries(inputs)) {
      const [folder] = /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path) ?? []
      if (folder !== undefined && bytesInOutput > 0) folders.add(folder.slice(folder.indexOf('node_modules/')))
    }
  return [...folders].map((folder) => {
    const about = JSON.parse(readFileSync(join(ROOT, folder, 'package.json'), 'utf8')) as NpmPackage
    const license = typeof about.license === 'string' ? about.license : (about.license?.type ?? null)
    const text = textIn(join(ROOT, folder))
    return {
      ...{ purl: `pkg:npm/${about.name.replace('@', '%40')}@${about.version}`, name: about.name, version: about.version, text },
      license: license ?? (text === null ? null : licenseOfText(text)),
    }
  })
}

interface NpmPackage {
  name: string
  version: string
  license?: string | { type?: string }
}

/** cr-sqlite, and the crates that it is built from. */
export function crateParts(): Part[] {
  const about = JSON.parse(readFileSync(join(ROOT, 'node_modules/@vlcn.io/crsqlite/package.json'), 'utf8')) as NpmPackage
  const sources = join(process.env['CARGO_HOME'] ?? join(homedir(), '.cargo'), 'registry/src')
  const folderOf = (name: string) =>
    existsSync(sources) ? readdirSync(sources).map((registry) => join(sources, registry, name)).find(existsSync) : undefined // biome-ignore format: short
  const locked = readFileSync(join(ROOT, 'scripts/cr-sqlite/Cargo.lock'), 'utf8').split('[[package]]')
  const crates = locked.flatMap((block): Part[] => {
    const [, name] = /^name = "(.*)"$/m.exec(block) ?? []
    const [, version] = /^version = "(.*)"$/m.exec(block) ?? []
    if (name === undefined || version === undefined || !/^source = /m.test(block)) return []
    const folder = folderOf(`${name}-${version}`)
    const [, license = null] = /^license = "(.*)"$/m.exec((folder && read(join(folder, 'Cargo.toml'))) ?? '') ?? []
    return [
      {
        purl: `pkg:cargo/${name}@${version}`,
        name,
        version,
        license: license?.replaceAll('/', ' OR ') ?? null,
        text: folder === undefined ? null : textIn(folder),
      },
    ]
  })
  const license = typeof about.license === 'string' ? about.license : 'Apache-2.0'
  const own = { purl: `pkg:npm/%40vlcn.io/crsqlite@${about.version}`, name: about.name, version: about.version, license }
  return [{ ...own, text: textIn(join(ROOT, 'node_modules/@vlcn.io/crsqlite')) }, ...crates]
}

/** The modules that a Go program says it was built from. */
export function goParts(program: string): Part[] {
  const told = Bun.spawnSync(['go', 'version', '-m', realpathSync(program)])
  if (!told.success) throw new Error(`go version -m ${program}: ${told.stderr.toString()}`)
  const cache = Bun.spawnSync(['go', 'env', 'GOMODCACHE']).stdout.toString().trim()
  const [, go = ''] = /: (go\S+)/.exec(told.stdout.toString()) ?? []
  const runtime = { purl: `pkg:golang/std@${go.slice(2)}`, name: 'go', version: go.slice(2), license: 'BSD-3-Clause', text: null }
  const modules = [...told.stdout.toString().matchAll(/^\t(?:mod|dep|=>)\t(\S+)\t(v\S+)/gm)].map(([, name = '', version = '']) => {
    const folder = join(
      cache,
      `${name}@${version}`.replace(/[A-Z]/g, (letter) => `!${letter.toLowerCase()}`),
    )
    const text = textIn(folder)
    return { purl: `pkg:golang/${name}@${version}`, name, version, license: text === null ? null : licenseOfText(text), text }
  })
  return [runtime, ...modules]
}

/** The Debian packages from which scripts/image-root made that folder, and the files in it that no package has here.
 *  It writes /etc/passwd itself. */
export function debianPartsOf(root: string): { parts: Part[]; unowned: string[] } {
  const files = [...new Bun.Glob('**').scanSync({ cwd: root, onlyFiles: true, dot: true })].filter((path) => path !== 'etc/passwd').sort()
  const places = new Map(files.map((path) => [`/${path}`, placesOf(path)]))
  const owners = debianOwners([...places.values()].flat())
  const ownerOf = (file: string): string | undefined => places.get(file)?.map((place) => owners.get(place)).find((name) => name !== undefined) // biome-ignore format: short
  const names = new Set([...places.keys()].flatMap((file) => ownerOf(file) ?? []))
  const parts = [...names].map((name) => installedPart(name, 'amd64'))
  return { parts, unowned: [...places.keys()].filter((file) => ownerOf(file) === undefined) }
}

/** A Debian package of this machine. */
export function installedPart(name: string, architecture: 'amd64' | 'all'): Part {
  // biome-ignore lint/suspicious/noTemplateCurlyInString: it is dpkg's
  const version = Bun.spawnSync(['dpkg-query', '-W', '-f', '${Version}\n', name]).stdout.toString().split('\n')[0] ?? ''
  if (version === '') throw new Error(`dpkg-query: the package ${name} is not installed here`)
  return debianPart(name, version, architecture, '/')
}

/** The paths under which dpkg can know a file of the image: it may be elsewhere on this machine, and its package has
 *  it before or after /usr was merged. */
const placesOf = (path: string): string[] =>
  [`/${path}`, ...['/bin', '/usr/sbin', '/sbin'].map((folder) => `${folder}/${basename(path)}`)]
    .filter((place) => existsSync(place))
    .flatMap((place) => [place, realpathSync(place)])
    .flatMap((place) => [place, place.replace(/^\/usr\//, '/'), `/usr${place}`])

function debianOwners(paths: readonly string[]): Map<string, string> {
  const found = Bun.spawnSync(['dpkg', '-S', ...new Set(paths)]).stdout.toString()
  const lines = found.matchAll(/^([a-z0-9][a-z0-9+.-]*)(?::\w+)?(?:, .*)?: (\/.*)$/gm)
  return new Map([...lines].map(([, name = '', path = '']) => [path, name]))
}

/** The same packages in a folder with unpacked packages of another processor. */
export function sameDebianParts(parts: ReadonlyArray<Pick<Part, 'name'>>, folder: string, architecture: string): Part[] {
  const versions = new Map((read(join(folder, 'packages')) ?? '').split('\n').map((line) => line.split(' ') as [string, string]))
  return parts.map(({ name }) => debianPart(name, versions.get(name) ?? '', architecture, folder))
}

function debianPart(name: string, version: string, architecture: string, root: string): Part {
  const text = read(join(root, 'usr/share/doc', name, 'copyright'))
  const words = [...new Set([...(text ?? '').matchAll(/^License:[ \t]*(\S.*)$/gm)].map(([, word = '']) => word.trim()))].sort()
  const license = words.length > 0 ? words.join(', ') : 'as in its copyright file'
  return { purl: `pkg:deb/debian/${name}@${version}?arch=${architecture}`, name, version, license, text }
}
