// Tar archives byte by byte, also those that no program would write.
export interface TarItem {
  name: string
  bytes?: string | Uint8Array
  type?: string
  link?: string
  /** What the header says, if it lies. */
  size?: number
  checksum?: number
}

const encoder = new TextEncoder()

export function tarOf(items: readonly TarItem[], { end = true }: { end?: boolean } = {}): Uint8Array {
  const parts = items.flatMap((item) => {
    const bytes = typeof item.bytes === 'string' ? encoder.encode(item.bytes) : (item.bytes ?? new Uint8Array())
    return [headerOf(item, bytes.byteLength), bytes, new Uint8Array((512 - (bytes.byteLength % 512)) % 512)]
  })
  return new Uint8Array(Buffer.concat(end ? [...parts, new Uint8Array(1024)] : parts))
}

function headerOf({ name, type = '0', link = '', size, checksum }: TarItem, length: number): Uint8Array {
  const block = new Uint8Array(512)
  const put = (text: string, at: number) => block.set(encoder.encode(text), at)
  put(name, 0)
  put('0000644\0', 100)
  put(`${(size ?? length).toString(8).padStart(11, '0')}\0`, 124)
  put('00000000000\0', 136)
  put('        ', 148)
  put(type, 156)
  put(link, 157)
  put('ustar\x0000', 257)
  const sum = checksum ?? block.reduce((all, byte) => all + byte, 0)
  put(`${sum.toString(8).padStart(6, '0')}\0 `, 148)
  return block
}

export const paxRecord = (key: string, value: string): string => {
  const rest = ` ${key}=${value}\n`
  let length = encoder.encode(rest).byteLength
  while (String(length).length + encoder.encode(rest).byteLength !== length)
    length = String(length).length + encoder.encode(rest).byteLength
  return `${length}${rest}`
}

export const gzipped = (bytes: Uint8Array): Uint8Array => new Uint8Array(Bun.gzipSync(new Uint8Array(bytes)))
