import { useEffect, useRef, useState } from 'preact/hooks'
import type {
  ImageRun,
  TokenPage,
  TrajectoryAnswer,
} from '../../src/doors/view/trajectory-shapes.ts'
import { formatCount } from '../data/format.ts'
import { goTo, hrefTo } from '../data/route.ts'
import { useData } from '../data/use-data.ts'
import { Candidates } from '../pages/siblings.tsx'
import { Show } from './states.tsx'
import {
  type Colouring,
  colourings,
  colouringTitles,
  legendOf,
  linesOf,
  type Shade,
  shadeOf,
} from './token-colour.ts'
import { Visible } from './visible.tsx'

const pageSize = 1500

interface TokenViewProps {
  readonly name: string
  readonly trajectory: TrajectoryAnswer
  readonly params: Readonly<Record<string, string>>
}

/** The tokens of a path, coloured by a chosen property. */
export function TokenView({ name, trajectory, params }: TokenViewProps) {
  const { id, paths } = trajectory
  const path = Math.min(Number(params.path ?? paths.length - 1) || 0, paths.length - 1)
  const by = colourings.find(each => each === params.colour) ?? 'logprob'
  const chosen = params.token === undefined ? undefined : Number(params.token)
  const from =
    Math.floor(
      Math.min(
        chosen ?? Number(params.from ?? 0) ?? 0,
        Math.max(0, (paths[path]?.tokens ?? 1) - 1),
      ) / pageSize,
    ) * pageSize
  const page = useData(`tokens ${name} ${id} ${path} ${from}`, source =>
    source.tokens(name, id, { path, offset: from, limit: pageSize }),
  )
  const go = (change: Readonly<Record<string, string | number | undefined>>): void =>
    goTo(hrefTo(['run', name, 'trajectory'], { ...params, path, ...change }), { replace: true })
  return (
    <section class="tokens">
      <div class="toolbar">
        <fieldset class="switch">
          <legend>Colour by</legend>
          {colourings.map(each => (
            <label key={each}>
              <input
                type="radio"
                name="colour"
                checked={each === by}
                onChange={() => go({ colour: each })}
              />
              <span>{colouringTitles[each]}</span>
            </label>
          ))}
        </fieldset>
        {paths.length > 1 && (
          <label>
            Path{' '}
            <select
              value={path}
              onChange={event => go({ path: event.currentTarget.value, token: undefined })}
            >
              {paths.map(({ tokens }, index) => (
                <option key={index} value={index}>
                  {index + 1} of {paths.length}, {formatCount(tokens)} tokens
                </option>
              ))}
            </select>
          </label>
        )}
      </div>
      <Legend by={by} />
      {paths[path]?.rewrite && (
        <p class="muted">
          This path was begun by {paths[path]!.rewrite!.by}: {paths[path]!.rewrite!.reason}.
        </p>
      )}
      <Show of={page} what="tokens">
        {value => (
          <>
            <Turner page={value} onTurn={offset => go({ from: offset, token: undefined })} />
            <Tokens
              page={value}
              by={by}
              chosen={chosen}
              onChoose={token => go({ token })}
              tryFrom={token => hrefTo(['run', name, 'try'], { id, at: `t${token}` })}
              canTry={path === paths.length - 1}
            />
          </>
        )}
      </Show>
    </section>
  )
}

/** The image that a token stands for. */
function imageAt({ images }: TokenPage, at: number): ImageRun | undefined {
  return images.find(({ start, end }) => start <= at && at < end)
}

/** The token by which a place is shown: the first of an image's that are on the page. */
function firstOf(page: TokenPage, at: number): number {
  const image = imageAt(page, at)
  return image ? Math.max(0, image.start) : at
}

const imageWords = ({ number, start, end }: ImageRun): string =>
  `[image ${number}, ${formatCount(end - start)} tokens]`

function style(shade: Shade | undefined): { background?: string } {
  return shade
    ? {
        background: `color-mix(in srgb, var(--${shade.hue}) ${Math.round(shade.strength * 100)}%, transparent)`,
      }
    : {}
}

function Legend({ by }: { by: Colouring }) {
  return (
    <ul class="token-legend" aria-label={`Colours of ${colouringTitles[by]}`}>
      {legendOf(by).map(({ text, shade }) => (
        <li key={text}>
          <i style={style(shade)} />
          {text}
        </li>
      ))}
      <li>
        <span class="token control">control</span>
      </li>
      <li class="muted">· space ↵ line break</li>
    </ul>
  )
}

function Turner({ page, onTurn }: { page: TokenPage; onTurn: (offset: number) => void }) {
  if (page.total <= pageSize) return null
  const end = page.offset + page.ids.length
  return (
    <p class="turner">
      <button
        type="button"
        disabled={page.offset === 0}
        onClick={() => onTurn(page.offset - pageSize)}
      >
        Earlier
      </button>
      <span class="number">
        {formatCount(page.offset)} to {formatCount(end)} of {formatCount(page.total)}
      </span>
      <button type="button" disabled={end >= page.total} onClick={() => onTurn(end)}>
        Later
      </button>
    </p>
  )
}

interface TokensProps {
  readonly page: TokenPage
  readonly by: Colouring
  readonly chosen: number | undefined
  readonly onChoose: (token: number) => void
  readonly tryFrom: (token: number) => string
  readonly canTry: boolean
}

function Tokens({ page, by, chosen, onChoose, tryFrom, canTry }: TokensProps) {
  const [hovered, setHovered] = useState<number | undefined>(undefined)
  const list = useRef<HTMLDivElement>(null)
  const inPage = chosen === undefined ? undefined : firstOf(page, chosen - page.offset)
  const at =
    hovered ??
    (inPage !== undefined && inPage >= 0 && inPage < page.ids.length ? inPage : undefined)
  useEffect(() => {
    const token = inPage === undefined ? undefined : list.current?.querySelector(`#token-${inPage}`)
    token?.scrollIntoView({ block: 'nearest' })
  }, [inPage])
  const indexOf = (event: Event): number | undefined => {
    const place = (event.target as HTMLElement).closest<HTMLElement>('[data-at]')?.dataset.at
    return place === undefined ? undefined : Number(place)
  }
  const move = (event: KeyboardEvent): void => {
    const step = {
      ArrowRight: 1,
      ArrowLeft: -1,
      ArrowDown: 20,
      ArrowUp: -20,
      Home: -1e9,
      End: 1e9,
    }[event.key]
    if (step === undefined) return
    event.preventDefault()
    const image = inPage === undefined ? undefined : imageAt(page, inPage)
    const from = image && step > 0 ? image.end - 1 : (inPage ?? -1)
    const next = Math.min(page.ids.length - 1, Math.max(0, from + step))
    onChoose(page.offset + firstOf(page, next))
  }
  return (
    <div class="token-sheet">
      <div
        class="run"
        ref={list}
        role="listbox"
        tabIndex={0}
        aria-label="Tokens; arrow keys go from one to the next"
        aria-activedescendant={inPage === undefined ? undefined : `token-${inPage}`}
        onMouseOver={event => setHovered(indexOf(event))}
        onMouseLeave={() => setHovered(undefined)}
        onFocus={() => undefined}
        onKeyDown={move}
        onClick={event => {
          const place = indexOf(event)
          if (place !== undefined) onChoose(page.offset + place)
        }}
      >
        <TokenRun page={page} by={by} chosen={inPage} />
      </div>
      <Detail
        page={page}
        at={at}
        {...(at !== undefined &&
          canTry &&
          page.origins[at] === 2 && { href: tryFrom(page.offset + at) })}
      />
    </div>
  )
}

function TokenRun({
  page,
  by,
  chosen,
}: {
  page: TokenPage
  by: Colouring
  chosen: number | undefined
}) {
  return (
    <>
      {page.ids.map((id, index) => {
        const image = imageAt(page, index)
        if (image && index > Math.max(0, image.start)) return null
        const text = image ? imageWords(image) : (page.texts[index] ?? `${id} `)
        const isBreak = text.includes('\n')
        return (
          <span
            key={index}
            id={`token-${index}`}
            data-at={index}
            role="option"
            tabIndex={-1}
            aria-selected={index === chosen}
            class={`token ${page.controls[index] ? 'control' : ''} ${page.repeats[index] ? 'repeat' : ''} ${isBreak ? 'break' : ''}`}
            style={style(shadeOf(page, index, by))}
          >
            <Visible text={text} />
          </span>
        )
      })}
    </>
  )
}

function Detail({ page, at, href }: { page: TokenPage; at: number | undefined; href?: string }) {
  if (at === undefined) {
    return (
      <div class="detail muted" role="status">
        Point at a token, or walk with the arrow keys.
      </div>
    )
  }
  const top = page.top[at]
  const image = imageAt(page, at)
  return (
    <div class="detail" role="status">
      <p class="token large">
        <Visible text={image ? imageWords(image) : (page.texts[at] ?? String(page.ids[at]))} />
      </p>
      <dl class="pairs">
        {image && (
          <div>
            <dt>size</dt>
            <dd>
              {image.width} x {image.height} pixels
            </dd>
          </div>
        )}
        {linesOf(page, at).map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      {top && top.length > 0 && <Candidates top={top} chosen={page.ids[at]} />}
      {href !== undefined && <a href={href}>Try another way from here</a>}
    </div>
  )
}
