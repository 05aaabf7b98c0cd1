// The files of the dashboard, bundled and compressed when this program is built (a macro), so that the binary has them
// without their sources.
import { rmSync } from 'node:fs'

/** JSON of BuiltAssets. */
export function builtAssets(): string {
  const root = `${import.meta.dir}/ui`
  const out = `${import.meta.dir}/../../build/dashboard-${process.pid}`
  const build = [process.execPath, 'build', '--target=browser', '--production', `--outdir=${out}`]
  const naming = ['--entry-naming=[name]-[hash].[ext]', '--chunk-naming=part-[hash].[ext]', '--asset-naming=[name]-[hash].[ext]']
  try {
    // The first program shares no file with the page, because it would wait for it. Nor is it a module, because
    // browsers run modules later.
    for (const program of [
      ['begin.ts', '--format=iife'],
      ['main.tsx', '--splitting'],
    ]) {
      const [entry = '', ...rest] = program
      // BUN_OPTIONS of this process, such as a preloaded probe, are refused by a build.
      const built = Bun.spawnSync(['env', '-u', 'BUN_OPTIONS', ...build, `${root}/${entry}`, ...rest, ...naming])
      if (!built.success) throw new Error(`cannot bundle the dashboard: ${built.stderr.toString()}`)
    }
    const read = (path: string) => Buffer.from(Bun.spawnSync(['cat', path]).stdout)
    const names = Bun.spawnSync(['ls', out]).stdout.toString().split('\n').filter(Boolean)
    const files = names.map((name) => fileOf(name, read(`${out}/${name}`)))
    const icon = read(`${root}/icon.svg`)
    files.push(fileOf(`icon-${Bun.hash(icon).toString(36)}.svg`, icon))
    return JSON.stringify(files)
  } finally {
    rmSync(out, { recursive: true, force: true })
  }
}

function fileOf(name: string, content: Buffer) {
  const plain = new Uint8Array(content)
  return {
    name,
    gzip: Buffer.from(Bun.gzipSync(plain, { level: 9 })).toString('base64'),
    zstd: Buffer.from(Bun.zstdCompressSync(plain, { level: 19 })).toString('base64'),
    bytes: plain.length,
  }
}
