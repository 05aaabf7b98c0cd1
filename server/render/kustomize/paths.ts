// Paths and addresses as kustomizations write them.
export const KUSTOMIZATION_NAMES = ['kustomization.yaml', 'kustomization.yml', 'Kustomization'] as const

export const inFolder = (folder: string, name: string): string => (folder === '' || name === '' ? folder + name : `${folder}/${name}`)

export const isBelow = (path: string, folder: string): boolean => folder === '' || path === folder || path.startsWith(`${folder}/`)

/** An address, which is never a file, whatever else has that name. */
export const isAddress = (text: string): boolean => /^[a-z][a-z0-9+.-]*(::|:\/\/)/i.test(text) || /^[\w.-]+@[\w.-]+:/.test(text)

/** As kustomize guesses when there is no such file: `github.com/org/repo//path?ref=v1`. */
export const looksRemote = (text: string): boolean =>
  isAddress(text) ||
  /[?&](ref|version|timeout|submodules)=/.test(text) ||
  /\w\/\/\w/.test(text) ||
  /\.git(\/|$)/.test(text) ||
  /^(\w[-\w]*\.)+(com|org|net|io|dev)[/:]/.test(text)

/** Where kustomize takes a path or the thing itself. An address may hold braces, too. */
export const isInline = (text: string): boolean => !isAddress(text) && /[\n{[]|:\s|:$/.test(text)
