// An act with consequences: whether the person may, what it does in exact names and numbers, a reason, and only then
// the button. The server decides again whether it is allowed.
import type { ComponentChildren } from 'preact'
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import type { Refusal } from '../state/api.ts'
import { refusalOf } from '../state/resource.ts'
import { type Right, useRight } from '../state/rights.ts'
import { text } from '../words/first.ts'
import { Denied, RefusalNote, Waiting } from './states.tsx'

interface ButtonProps {
  right: Right
  label: string
  /** Text for a screen reader, where the label alone is one of many. */
  about?: string
  look?: 'primary' | 'quiet'
  onClick(): void
}

/** Without the right it stays where it is, and its dialog says which right is missing. */
export function ActionButton({ right, label, about, look, onClick }: ButtonProps) {
  const isDenied = useRight(right)?.allowed === false
  return (
    <button
      type="button"
      class={[isDenied ? 'is-denied' : '', isDenied ? '' : (look ?? '')].filter(Boolean).join(' ') || undefined}
      aria-label={about}
      title={isDenied ? text.states.deniedButton : undefined}
      onClick={onClick}
    >
      {label}
    </button>
  )
}

/** Every action says why: the reason is kept in the audit log. */
export function ReasonField() {
  return (
    <label>
      {text.actions.reason}
      <input name="reason" required maxLength={500} autocomplete="off" />
      <span>{text.actions.reasonHint}</span>
    </label>
  )
}

interface ActionProps<P> {
  /** The right that the server asks for, or null. It is asked before anything is typed: a refused request would be an
   *  entry of the audit log. */
  right: Right | null
  title: string
  label: string
  /** Reads what would happen. Absent means that nothing has to be read. */
  plan?(): Promise<P>
  describe(plan: P): ComponentChildren
  /** False: there is nothing to do. */
  isNeeded?(plan: P): boolean
  act(plan: P, reason: string): Promise<unknown>
  onDone?(): void
  onClose(): void
}

export function ActionDialog<P>({ title, right, ...action }: ActionProps<P>) {
  const dialog = useRef<HTMLDialogElement>(null)
  const may = useRight(right)
  useLayoutEffect(() => dialog.current?.showModal(), [])
  const close = () => dialog.current?.close()
  return (
    <dialog ref={dialog} onClose={action.onClose} aria-label={title}>
      {may?.allowed === true ? (
        <Form title={title} {...action} close={close} />
      ) : (
        <div class="body">
          <h2>{title}</h2>
          {may === null ? <Waiting rows={2} /> : <Denied detail={may.detail} />}
          <div class="ends">
            <button type="button" onClick={close}>
              {text.actions.close}
            </button>
          </div>
        </div>
      )}
    </dialog>
  )
}

function Form<P>({
  title,
  label,
  plan,
  describe,
  isNeeded,
  act,
  onDone,
  onClose,
  close,
}: Omit<ActionProps<P>, 'right'> & { close(): void }) {
  const [planned, setPlanned] = useState<{ of: P } | null>(plan === undefined ? { of: undefined as P } : null)
  const [refusal, setRefusal] = useState<Refusal | null>(null)
  const [isWorking, setWorking] = useState(false)
  useEffect(() => {
    plan?.().then(
      (of) => setPlanned({ of }),
      (error: unknown) => setRefusal(refusalOf(error)),
    )
  }, [])
  const submit = async (event: SubmitEvent) => {
    event.preventDefault()
    if (planned === null) return
    const reason = new FormData(event.currentTarget as HTMLFormElement).get('reason')
    setWorking(true)
    setRefusal(null)
    try {
      await act(planned.of, typeof reason === 'string' ? reason.trim() : '')
      onDone?.()
      onClose()
    } catch (error) {
      setRefusal(refusalOf(error))
      setWorking(false)
    }
  }
  const isOpen = planned !== null && (isNeeded?.(planned.of) ?? true)
  return (
    <form onSubmit={submit}>
      <h2>{title}</h2>
      {planned === null ? refusal === null && <Waiting rows={2} /> : <div class="stack">{describe(planned.of)}</div>}
      {refusal !== null && <RefusalNote refusal={refusal} />}
      {isOpen && <ReasonField />}
      <div class="ends">
        <button type="button" onClick={close}>
          {text.actions.cancel}
        </button>
        {isOpen && (
          <button type="submit" class="primary" disabled={isWorking}>
            {isWorking ? text.actions.working : label}
          </button>
        )}
      </div>
    </form>
  )
}

/** Names in full; of very many the first, and how many more there are. */
const NAMES_SHOWN = 500
export function NameList({ names, tone }: { names: readonly string[]; tone?: string }) {
  if (names.length === 0) return null
  return (
    <ul class="name-list" tabIndex={0}>
      {names.slice(0, NAMES_SHOWN).map((name) => (
        <li key={name} class={tone}>
          {name}
        </li>
      ))}
      {names.length > NAMES_SHOWN && <li class="faint">{text.actions.more(names.length - NAMES_SHOWN)}</li>}
    </ul>
  )
}
