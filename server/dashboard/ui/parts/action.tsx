// An act with consequences: what it does in exact names and numbers, a reason, and only then the button. The server decides again whether it is allowed.
import type { ComponentChildren } from 'preact'
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import type { Refusal } from '../state/api.ts'
import { refusalOf } from '../state/resource.ts'
import { text } from '../words.ts'
import { RefusalNote, Waiting } from './states.tsx'

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
  title: string
  label: string
  /** Reads what would happen; absent: nothing has to be read. */
  plan?(): Promise<P>
  describe(plan: P): ComponentChildren
  /** False: there is nothing to do. */
  isNeeded?(plan: P): boolean
  needsReason?: boolean
  act(plan: P, reason: string): Promise<unknown>
  onDone(): void
  onClose(): void
}

export function ActionDialog<P>({ title, label, plan, describe, isNeeded, needsReason = false, act, onDone, onClose }: ActionProps<P>) {
  const dialog = useRef<HTMLDialogElement>(null)
  const [planned, setPlanned] = useState<{ of: P } | null>(plan === undefined ? { of: undefined as P } : null)
  const [refusal, setRefusal] = useState<Refusal | null>(null)
  const [isWorking, setWorking] = useState(false)
  useLayoutEffect(() => dialog.current?.showModal(), [])
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
      onDone()
      onClose()
    } catch (error) {
      setRefusal(refusalOf(error))
      setWorking(false)
    }
  }
  const isOpen = planned !== null && (isNeeded?.(planned.of) ?? true)
  return (
    <dialog ref={dialog} onClose={onClose} aria-label={title}>
      <form onSubmit={submit}>
        <h2>{title}</h2>
        {planned === null ? refusal === null && <Waiting rows={2} /> : <div class="stack">{describe(planned.of)}</div>}
        {refusal !== null && <RefusalNote refusal={refusal} />}
        {needsReason && isOpen && <ReasonField />}
        <div class="ends">
          <button type="button" onClick={() => dialog.current?.close()}>
            {text.actions.cancel}
          </button>
          {isOpen && (
            <button type="submit" class="primary" disabled={isWorking}>
              {isWorking ? text.actions.working : label}
            </button>
          )}
        </div>
      </form>
    </dialog>
  )
}
