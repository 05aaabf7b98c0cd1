// What the documents of the repository hold: fenced blocks, inline code, headings and links, each with its file and
// line.
import { repositoryFiles, type SourceFile } from './source-files.ts'

export const markdownFiles: readonly SourceFile[] = repositoryFiles.filter(({ path }) => path.endsWith('.md'))
/** The pages for users: the README and the folder docs. */
export const userPages: readonly SourceFile[] = markdownFiles.filter(({ path }) => path === 'README.md' || path.startsWith('docs/'))

export interface Block {
  /** `file:line` of its first line. */
  place: string
  /** The words behind the fence: `yaml`, `yaml renderers`. */
  info: string
  text: string
}

const FENCE = /^( *)```([^\n`]*)\n(.*?)^\1``` *$/gms

const lineAt = (text: string, index: number): number => text.slice(0, index).split('\n').length

export const blocksOf = ({ path, text }: SourceFile): Block[] =>
  [...text.matchAll(FENCE)].map(({ index, 1: indent = '', 2: info = '', 3: body = '' }) => ({
    place: `${path}:${lineAt(text, index) + 1}`,
    info: info.trim(),
    text: body
      .split('\n')
      .map((line) => (line.startsWith(indent) ? line.slice(indent.length) : line))
      .join('\n'),
  }))

/** The text with fenced blocks blanked out; lines keep their numbers. */
export const withoutBlocks = (text: string): string => text.replace(FENCE, (block) => block.replace(/[^\n]/g, ' '))

export const inlineCodeOf = ({ path, text }: SourceFile): { place: string; code: string }[] => {
  const prose = withoutBlocks(text)
  return [...prose.matchAll(/`([^`]+)`/g)].map(({ index, 1: code = '' }) => ({
    place: `${path}:${lineAt(prose, index)}`,
    code: code.replaceAll(/\s+/g, ' '),
  }))
}

/** Targets of links in the text, without those in code. */
export const linksOf = ({ path, text }: SourceFile): { place: string; target: string }[] => {
  const prose = withoutBlocks(text).replace(/`[^`\n]*`/g, (code) => code.replace(/[^\n]/g, ' '))
  return [...prose.matchAll(/\[[^\]]*\]\(([^)\s]+)\)/g)].map(({ index, 1: target = '' }) => ({
    place: `${path}:${lineAt(prose, index)}`,
    target,
  }))
}

/** The anchors of the headings, as Git hosts make them. */
export const anchorsOf = ({ text }: SourceFile): Set<string> => {
  const anchors = new Set<string>()
  for (const [, title = ''] of withoutBlocks(text).matchAll(/^#{1,6} +(.+?) *$/gm)) {
    const slug = title
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\p{M} _-]/gu, '')
      .replaceAll(' ', '-')
    let anchor = slug
    for (let copy = 1; anchors.has(anchor); copy += 1) anchor = `${slug}-${copy}`
    anchors.add(anchor)
  }
  return anchors
}
