import type { ComponentChildren } from 'preact'
import type { Loaded } from '../data/use-data.ts'

/** Something that could not be shown, and what can be done about it. */
export function Problem({ text, href, link }: { text: string; href?: string; link?: string }) {
  return (
    <section class="state" role="alert">
      <h1>This could not be shown</h1>
      <p>{text}</p>
      {href !== undefined && <a href={href}>{link}</a>}
    </section>
  )
}

/** Nothing to show yet, or nothing that fits. */
export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <section class="state">
      <h2>{title}</h2>
      {children}
    </section>
  )
}

/** Placeholder lines while text is loading. */
export function Waiting({ what, lines = 4 }: { what: string; lines?: number }) {
  return (
    <div class="waiting" role="status">
      <span class="hidden">Loading {what}</span>
      {Array.from({ length: lines }, (_, line) => (
        <div key={line} class="bone" />
      ))}
    </div>
  )
}

/** Shows what was loaded, or the state of loading. */
export function Show<T>({
  of,
  what,
  children,
}: {
  of: Loaded<T>
  what: string
  children: (value: T) => ComponentChildren
}) {
  if (of.kind === 'loading') return <Waiting what={what} />
  if (of.kind === 'failed') return <Problem text={of.problem} />
  return <>{children(of.value)}</>
}
