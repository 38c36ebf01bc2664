import 'uplot/dist/uPlot.min.css'
import './style/base.css'
import './style/parts.css'
import './style/pages.css'
import { render } from 'preact'
import { App } from './app.tsx'
import { hasRunsInside, openFileSource } from './data/file-source.ts'
import { servedSource } from './data/served-source.ts'
import { SourceContext } from './data/use-data.ts'

const source = hasRunsInside() ? openFileSource() : servedSource

render(
  <SourceContext.Provider value={source}>
    <App />
  </SourceContext.Provider>,
  document.getElementById('app')!,
)
