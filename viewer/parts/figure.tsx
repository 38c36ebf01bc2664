import type { ComponentChildren } from 'preact'

/** A number with what it is. */
export function Figure({
  value,
  label,
  note,
}: {
  value: ComponentChildren
  label: string
  note?: string
}) {
  return (
    <div class="figure">
      <dt>{label}</dt>
      <dd>
        <b>{value}</b>
        {note !== undefined && <small>{note}</small>}
      </dd>
    </div>
  )
}

/** Several numbers beside each other. */
export function Figures({ children }: { children: ComponentChildren }) {
  return <dl class="figures">{children}</dl>
}

/** A list of names and numbers, with bars that show their shares. */
export function Bars({
  items,
  format,
}: {
  items: readonly (readonly [string, number])[]
  format: (value: number) => string
}) {
  const most = Math.max(...items.map(([, value]) => value), 0)
  return (
    <dl class="bars">
      {items.map(([name, value]) => (
        <div key={name} class={/^(?:failed|aborted) /.test(name) ? 'failure' : ''}>
          <dt title={name}>{name}</dt>
          <dd>
            <span class="track" aria-hidden="true">
              <span style={{ width: `${most === 0 ? 0 : (value / most) * 100}%` }} />
            </span>
            <b>{format(value)}</b>
          </dd>
        </div>
      ))}
    </dl>
  )
}
