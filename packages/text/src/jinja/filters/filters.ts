import type { Method } from '../signature.ts'
import { HTML_FILTERS } from './filters-html.ts'
import { LIST_FILTERS } from './filters-list.ts'
import { NUMBER_FILTERS } from './filters-number.ts'
import { selectionFilters } from './filters-selection.ts'
import { TEXT_FILTERS } from './filters-text.ts'

/** Every filter a chat template can use: Jinja's own, and `tojson` as transformers defines it. */
export const FILTERS: ReadonlyMap<string, Method> = new Map<string, Method>([
  ...TEXT_FILTERS,
  ...NUMBER_FILTERS,
  ...LIST_FILTERS,
  ...HTML_FILTERS,
  ...selectionFilters(name => FILTERS.get(name)),
])
