// SOPS files that a program of the server needs in clear: Helm values files, and env files of a secretGenerator. They
// are opened only with a key that the operator gave this server.
import { emitSops } from '../../../shared/sops/emit.ts'
import { openSops, type SopsScalar } from '../../../shared/sops/open.ts'
import { recipientsText, type SopsFormat, type SopsParcel } from '../../../shared/sops/parcel.ts'
import { readSops } from '../../../shared/sops/read.ts'
import type { OpenedSops, RenderJob } from '../renderer.ts'

export type ClearFile = { kind: 'clear'; text: string } | { kind: 'closed'; message: string }

export async function clearSopsFile({ openSops: open }: Pick<RenderJob, 'openSops'>, text: string, format: SopsFormat): Promise<ClearFile> {
  const read = readSops(text, format)
  if (read.kind !== 'parcel') return closed(read.kind === 'refused' ? read.why : 'its SOPS metadata cannot be read')
  const { parcel } = read
  const opened = (await open?.(parcel)) ?? { kind: 'closed', recipients: [] }
  switch (opened.kind) {
    case 'wrong':
      return closed(opened.why)
    case 'closed':
      return closed(whyClosed(parcel, opened.recipients))
    case 'open': {
      const bytes = emitSops(parcel, opened.sops)
      return bytes === null ? closed('it does not have the form of its format') : { kind: 'clear', text: bytes.toString('utf8') }
    }
  }
}

/** `shown`: stands for an encrypted value. */
export function openParcel(
  parcel: SopsParcel,
  key: Uint8Array,
  shown?: (value: SopsScalar, path: readonly string[]) => SopsScalar,
): OpenedSops {
  const result = openSops(parcel, key, shown)
  if (result.kind === 'open') return result
  return {
    kind: 'wrong',
    why: result.kind === 'mac' ? 'it was changed after it was encrypted (the MAC does not match); edit it with sops' : result.why,
  }
}

const closed = (why: string): ClearFile => ({ kind: 'closed', message: `is encrypted by SOPS: ${why}` })

function whyClosed({ age }: SopsParcel, recipients: readonly string[]): string {
  const to = `it is encrypted to ${recipientsText(age.map(([recipient]) => recipient))}`
  const here = recipients.length === 0 ? 'this server has no age key' : `this server has the keys of ${recipientsText(recipients)}`
  return `it is needed in clear here, ${to}, and ${here}; an operator of the server decides with --sops-keys. To decrypt only at the site, put the values into a Secret manifest that SOPS encrypted`
}
