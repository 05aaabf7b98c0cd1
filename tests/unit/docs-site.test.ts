// The site of the documents: every page is in the sidebar once, links lead to pages of the site, templates stay as they
// are.
import { expect, test } from 'bun:test'
import { posix } from 'node:path'
import { siteConfig, sitePages } from '../../scripts/docs-pages/site.ts'
import { linksOf, markdownFiles } from '../support/markdown.ts'

const pages = sitePages(markdownFiles)
const linkTo = (path: string): string => `/${path.replace(/(index)?\.md$/, '')}`

test('every page is in the sidebar once, with its title', () => {
  const items = siteConfig(markdownFiles).themeConfig.sidebar.flatMap((section) => section.items)
  expect(items.map(({ link }) => link).sort()).toEqual(pages.map(({ path }) => linkTo(path)).sort())
  expect(items.filter(({ text }) => text.endsWith('.md'))).toEqual([])
  expect(items.length).toBeGreaterThan(30)
})

test('docs/README.md links every other page', () => {
  const index = markdownFiles.find(({ path }) => path === 'docs/README.md')
  const linked = new Set(index === undefined ? [] : linksOf(index).map(({ target }) => posix.join('docs', target)))
  const others = markdownFiles.filter(({ path }) => path.startsWith('docs/') && path !== 'docs/README.md')
  expect(others.map(({ path }) => path).filter((path) => !linked.has(path))).toEqual([])
})

test('the README is the index of its folder, also for links', () => {
  const readme = { path: 'README.md', text: '# A\n[b](docs/README.md#c) [d](https://example.com/README.md)\n' }
  expect(sitePages([readme, { path: 'tests/x.md', text: '' }])).toEqual([
    { path: 'index.md', text: '::: v-pre\n# A\n[b](docs/index.md#c) [d](https://example.com/README.md)\n\n:::\n' },
  ])
})
