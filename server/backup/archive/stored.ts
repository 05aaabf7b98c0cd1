// Port of the places: names and sizes of archives, and how they are read and written.

export interface StoredArchive {
  name: string
  bytes: number
}

export interface BackupPlace {
  /** For people and logs; without credentials. */
  readonly text: string
  /** Other people's machines keep it. */
  readonly remote: boolean
  /** Archives only, the oldest first. */
  list(): Promise<StoredArchive[]>
  /** The archive has its name when all of it is stored, or not at all. Resolves with its bytes. */
  write(name: string, chunks: AsyncIterable<Uint8Array>): Promise<number>
  read(name: string): Promise<ReadableStream<Uint8Array>>
  remove(name: string): Promise<void>
}

/** The names sort by time. */
const ARCHIVE = /^skerry-\d{8}T\d{6}Z\.tar\.zst(\.age)?$/
/** When it was made. Null means that it is no archive. */
export function archiveMs(name: string): number | null {
  const [, year, month, day, hour, minute, second] = /^skerry-(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z\./.exec(name) ?? []
  return year === undefined ? null : Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`)
}
export const isArchiveName = (name: string): boolean => ARCHIVE.test(name)
export const archiveName = (atMs: number, encrypted: boolean): string =>
  `skerry-${new Date(atMs).toISOString().replace(/\.\d+/, '').replace(/[-:]/g, '')}.tar.zst${encrypted ? '.age' : ''}`
