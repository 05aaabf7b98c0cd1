// The Markdown files of the repository as the source of a site: pages, and the configuration of VitePress. Pure.

export interface SourcePage {
  /** From the root of the repository. */
  path: string
  text: string
}

const isPage = ({ path }: SourcePage): boolean => /^(README|ARCHITECTURE)\.md$|^docs\/.*\.md$|^shared\/SPEC[\w-]*\.md$/.test(path)
/** A folder is shown by its index. */
const indexed = (path: string): string => path.replace(/(^|\/)README\.md/, '$1index.md')

/** Texts are shown as they are: `{{ cluster.name }}` is no expression of the site. */
export const sitePages = (files: readonly SourcePage[]): SourcePage[] =>
  files.filter(isPage).map(({ path, text }) => ({
    path: indexed(path),
    text: `::: v-pre\n${text.replace(/\]\((?![a-z]+:)([^)\s]+)\)/g, (_, target: string) => `](${indexed(target)})`)}\n:::\n`,
  }))

const SECTIONS: ReadonlyArray<readonly [title: string, pattern: RegExp]> = [
  ['Start', /^(README|docs\/README)\.md$/],
  ['Concepts', /^docs\/(concepts\/.*|security)\.md$/],
  ['How-to guides', /^docs\/how-to\//],
  ['Reference', /^docs\/reference\//],
  ['How it is built', /^(ARCHITECTURE|docs\/decisions\/.*|shared\/.*)\.md$/],
]

const titleOf = ({ path, text }: SourcePage): string => /^# (.+)$/m.exec(text)?.[1] ?? path

export interface SiteConfig {
  title: string
  description: string
  themeConfig: {
    search: { provider: 'local' }
    outline: [number, number]
    sidebar: { text: string; items: { text: string; link: string }[] }[]
  }
}

export const siteConfig = (files: readonly SourcePage[]): SiteConfig => ({
  title: 'Skerry',
  description: 'GitOps for fleets of Kubernetes clusters',
  themeConfig: {
    search: { provider: 'local' },
    outline: [2, 3],
    sidebar: SECTIONS.map(([text, pattern]) => ({
      text,
      items: files
        .filter((file) => isPage(file) && pattern.test(file.path))
        .map((file) => ({ text: titleOf(file), link: `/${indexed(file.path).replace(/(index)?\.md$/, '')}` })),
    })),
  },
})
