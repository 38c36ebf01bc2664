import { useEffect, useState } from 'preact/hooks'
import type { Facet, Facets } from '../../src/doors/view/answers.ts'
import { type GroupQuery, plainQuery } from '../../src/doors/view/query.ts'
import { formatCount } from '../data/format.ts'
import { isWide } from './theme.tsx'

interface FiltersProps {
  readonly query: GroupQuery
  readonly facets: Facets | undefined
  readonly onChange: (query: GroupQuery) => void
}

type Change = { readonly [Name in keyof GroupQuery]?: GroupQuery[Name] | undefined }

/** The filters of the table of groups. All of them are in the address. */
export function GroupFilters({ query, facets, onChange }: FiltersProps) {
  const set = (change: Change): void => {
    const entries = Object.entries({ ...query, ...change }).filter(
      ([, value]) => value !== undefined && value !== '',
    )
    onChange({ ...plainQuery, ...Object.fromEntries(entries) })
  }
  const { sort, isDescending } = query
  const isNarrowed = Object.keys(query).length > 2
  return (
    <details class="narrowing" open={isWide() || isNarrowed}>
      <summary>Narrow down</summary>
      <search class="filters">
        <Fields query={query} facets={facets} set={set} />
        <Choices query={query} facets={facets} set={set} />
        {isNarrowed && (
          <button type="button" onClick={() => onChange({ ...plainQuery, sort, isDescending })}>
            Clear
          </button>
        )}
      </search>
    </details>
  )
}

interface PartProps {
  readonly query: GroupQuery
  readonly facets: Facets | undefined
  readonly set: (change: Change) => void
}

function Fields({ query, facets, set }: PartProps) {
  const { text, task, fromStep, toStep, fromReward, toReward } = query
  return (
    <>
      <TextField
        label="Text"
        hint="in messages"
        value={text}
        onChange={each => set({ text: each })}
      />
      <TextField label="Task" hint="or group" value={task} onChange={each => set({ task: each })} />
      <NumberRange
        label="Step"
        low={fromStep}
        high={toStep}
        range={facets?.steps}
        onChange={(low, high) => set({ fromStep: low, toStep: high })}
      />
      <NumberRange
        label="Mean reward"
        low={fromReward}
        high={toReward}
        range={facets?.rewards}
        onChange={(low, high) => set({ fromReward: low, toReward: high })}
      />
    </>
  )
}

const contrasts = [
  { value: 'some', text: 'with' },
  { value: 'none', text: 'without' },
] as const

const parts = [
  { value: 'rolled', text: 'rolled' },
  { value: 'evaluation', text: 'held out' },
] as const

function Choices({ query, facets, set }: PartProps) {
  const facetChoices = [
    { label: 'Outcome', name: 'outcome', facets: facets?.outcomes },
    { label: 'Filtered by', name: 'reason', facets: facets?.reasons },
    { label: 'Tool', name: 'tool', facets: facets?.tools },
  ] as const
  return (
    <>
      <Choice
        label="Contrast"
        value={query.contrast}
        options={contrasts}
        onChange={value => set({ contrast: contrasts.find(each => each.value === value)?.value })}
      />
      {facetChoices.map(({ label, name, facets: values }) => (
        <FacetChoice
          key={name}
          label={label}
          value={query[name]}
          facets={values}
          onChange={value => set({ [name]: value })}
        />
      ))}
      {(facets?.evaluations ?? 0) > 0 && (
        <Choice
          label="Part"
          value={query.part}
          options={parts}
          onChange={value => set({ part: parts.find(each => each.value === value)?.value })}
        />
      )}
    </>
  )
}

interface FieldProps {
  readonly label: string
  readonly value: string | undefined
  readonly onChange: (value: string | undefined) => void
}

/** A field that reports its value when typing has stopped. */
function TextField({ label, hint, value = '', onChange }: FieldProps & { hint: string }) {
  const [text, setText] = useState(value)
  useEffect(() => setText(value), [value])
  useEffect(() => {
    if (text === value) return
    const timer = setTimeout(() => onChange(text || undefined), 250)
    return () => clearTimeout(timer)
  }, [text])
  return (
    <label>
      <span>{label}</span>
      <input
        type="search"
        value={text}
        placeholder={hint}
        onInput={event => setText(event.currentTarget.value)}
      />
    </label>
  )
}

function FacetChoice({
  facets = [],
  ...field
}: FieldProps & { facets: readonly Facet[] | undefined }) {
  if (facets.length === 0) return null
  const options = facets
    .slice(0, 60)
    .map(({ value, count }) => ({ value, text: `${value} (${formatCount(count)})` }))
  return <Choice {...field} options={options} />
}

function Choice({
  label,
  value = '',
  options,
  onChange,
}: FieldProps & { options: readonly { value: string; text: string }[] }) {
  return (
    <label>
      <span>{label}</span>
      <select value={value} onChange={event => onChange(event.currentTarget.value || undefined)}>
        <option value="">any</option>
        {options.map(option => (
          <option key={option.value} value={option.value}>
            {option.text}
          </option>
        ))}
      </select>
    </label>
  )
}

interface RangeProps {
  readonly label: string
  readonly low: number | undefined
  readonly high: number | undefined
  readonly range: { readonly low: number; readonly high: number } | null | undefined
  readonly onChange: (low: number | undefined, high: number | undefined) => void
}

function NumberRange({ label, low, high, range, onChange }: RangeProps) {
  if (!range || range.low === range.high) return null
  const read = (text: string): number | undefined =>
    text === '' || Number.isNaN(Number(text)) ? undefined : Number(text)
  const short = (value: number): string => Number(value.toFixed(2)).toString()
  return (
    <fieldset class="range">
      <legend>{label}</legend>
      <input
        type="number"
        step="any"
        aria-label={`${label} from`}
        placeholder={short(range.low)}
        value={low ?? ''}
        onChange={event => onChange(read(event.currentTarget.value), high)}
      />
      <span aria-hidden="true">–</span>
      <input
        type="number"
        step="any"
        aria-label={`${label} to`}
        placeholder={short(range.high)}
        value={high ?? ''}
        onChange={event => onChange(low, read(event.currentTarget.value))}
      />
    </fieldset>
  )
}
