// The pages of the dashboard are a program of their own: they run in a browser and know the server by HTTP alone.
import { expect, test } from 'bun:test'
import { importsOf, productFiles } from './support/source-files.ts'

const UI = 'server/dashboard/ui/'
const pageFiles = productFiles.filter(({ path }) => path.startsWith(UI))

/** Fails with the reason and the offenders, one a line. */
const expectNone = (offenders: string[], reason: string) =>
  expect(offenders.length === 0 ? '' : `${reason}\n${offenders.join('\n')}\n`).toBe('')

/** Pure code without libraries that the command line and a page share. */
const FOR_BOTH = ['shared/install/', 'shared/runtime/loopback.ts']

test('the pages import only themselves, the client of the API, types of shared/, and the join command', () => {
  const offenders = pageFiles
    .flatMap((file) => importsOf(file).flatMap((one) => (one.target === null ? [] : [{ path: file.path, ...one }])))
    .filter(
      ({ target, typeOnly }) =>
        ![UI, 'client/', ...FOR_BOTH].some((folder) => target?.startsWith(folder)) && !(target?.startsWith('shared/') && typeOnly),
    )
  expectNone(
    offenders.map(({ path, target }) => `${path} imports ${target}`),
    'what a page imports is sent to a browser, and the server that answers it may be of another version',
  )
})

test('what a page shares with the command line imports nothing else', () => {
  const offenders = productFiles
    .filter(({ path }) => FOR_BOTH.some((folder) => path.startsWith(folder)))
    .flatMap((file) => importsOf(file).map(({ specifier, target }) => ({ path: file.path, target: target ?? specifier })))
    .filter(({ target }) => !FOR_BOTH.some((folder) => target.startsWith(folder)))
  expectNone(
    offenders.map(({ path, target }) => `${path} imports ${target}`),
    'its libraries would be sent to browsers',
  )
})

test('one file knows the credential', () => {
  const home = `${UI}state/credential.ts`
  const offenders = pageFiles.filter(({ path, text }) => path !== home && /sessionStorage|Bearer/.test(text))
  expectNone(
    offenders.map(({ path }) => path),
    'a sign-in by cookie takes the place of the token in one file',
  )
})

test('nothing is put into a page as markup', () => {
  const offenders = pageFiles.filter(({ text }) => /innerHTML|insertAdjacentHTML|document\.write/.test(text))
  expectNone(
    offenders.map(({ path }) => path),
    'messages come from clusters: they are text and never markup',
  )
})

/** Texts and values of attributes that a person reads, as the compiled form of a file shows them. */
const READ_BY_PEOPLE = /\b(?:children|title|"?aria-label"?|placeholder|label|alt|message|detail|head|about): (["'`])(?<found>.*?)\1/g
const AMONG_CHILDREN = /^\s*"(?<found>[^"]*)",?$/gm

function textsOf(source: string, loader: 'ts' | 'tsx'): string[] {
  const tsconfig = JSON.stringify({ compilerOptions: { jsx: 'react-jsx', jsxImportSource: 'preact' } })
  const compiled = new Bun.Transpiler({ loader, tsconfig }).transformSync(source)
  return [READ_BY_PEOPLE, ...(loader === 'tsx' ? [AMONG_CHILDREN] : [])]
    .flatMap((shape) => [...compiled.matchAll(shape)].map(({ groups }) => groups?.['found'] ?? ''))
    .filter((found) => /\p{Letter}{2}/u.test(found.replace(/\$\{[^}]*\}/g, '')))
}

test('every text that a person reads is in the catalogue', () => {
  const seen = textsOf('export const x = <p title="Two words">One <b>more</b></p>', 'tsx')
  expect(seen.sort()).toEqual(['One ', 'Two words', 'more'])
  const offenders = pageFiles
    .filter(({ path }) => !path.startsWith(`${UI}words/`))
    .flatMap(({ path, text }) => textsOf(text, path.endsWith('x') ? 'tsx' : 'ts').map((found) => `${path}: ${found}`))
  expectNone(offenders, 'a text outside of ui/words/ is not found by who translates or corrects them')
})

test('numbers are put beside their nouns by the catalogue alone', () => {
  const offenders = pageFiles.filter(
    ({ path, text }) => !path.startsWith(`${UI}words/`) && /import [^;]*\bcount\b[^;]*from '[^']*words\/count/.test(text),
  )
  expectNone(
    offenders.map(({ path }) => path),
    'other languages have other plurals',
  )
})
