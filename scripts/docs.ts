// Writes the reference pages that are made from the source, and builds or serves all pages as a site with a search that
// needs no network.
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { referencePages } from './docs-pages/pages.ts'
import { siteConfig, sitePages } from './docs-pages/site.ts'

const root = join(import.meta.dir, '..')
const site = join(root, 'build/site')

function write(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text)
}

function generate(): void {
  for (const { path, text } of referencePages()) {
    write(join(root, path), text)
    process.stdout.write(`docs: ${path}\n`)
  }
}

async function build(): Promise<void> {
  const paths = ['*.md', 'docs/**/*.md', 'shared/*.md'].flatMap((pattern) => [...new Bun.Glob(pattern).scanSync(root)]).sort()
  const files = paths.map((path) => ({ path, text: readFileSync(join(root, path), 'utf8') }))
  rmSync(site, { recursive: true, force: true })
  for (const { path, text } of sitePages(files)) write(join(site, path), text)
  write(join(site, '.vitepress/config.mjs'), `export default ${JSON.stringify(siteConfig(files), null, 2)}\n`)
  await vitepress('build', site)
  process.stdout.write(`docs: ${join(site, '.vitepress/dist')}\n`)
}

async function vitepress(...args: string[]): Promise<void> {
  const child = Bun.spawn(['bun', '--bun', join(root, 'node_modules/.bin/vitepress'), ...args], {
    cwd: root,
    stdio: ['inherit', 'inherit', 'inherit'],
  })
  const exitCode = await child.exited
  if (exitCode !== 0) process.exit(exitCode)
}

const [word, ...more] = process.argv.slice(2)
if (word === 'generate' && more.length === 0) generate()
else if (word === 'build' && more.length === 0) await build()
else if (word === 'serve') {
  await build()
  await vitepress('preview', site, ...more)
} else {
  process.stderr.write('docs: expected generate, build or serve\n')
  process.exit(2)
}
