/** Draws how many attempts were sent in each second. The picture has the colours of the reader's system. */

export interface Curve {
  readonly name: string
  /** Of the styles below. */
  readonly style: 'a' | 'b' | 'c'
  readonly timesMs: readonly number[]
}

export interface ChartOptions {
  readonly fromMs: number
  readonly toMs: number
  readonly downMs: number
  readonly curves: readonly Curve[]
}

const [WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM] = [760, 340, 56, 16, 52, 44]
export const BIN_MS = 1_000

const STYLE = `
  text { font: 12px ui-sans-serif, system-ui, sans-serif; fill: #4b534e }
  .title { font-size: 14px; font-weight: 600; fill: #1d2320 }
  .grid { stroke: #e3e0d7 } .down { fill: #b3261e; opacity: .09 }
  path { fill: none; stroke-width: 2.2; stroke-linejoin: round }
  path.grid { stroke-width: 1 }
  .a { stroke: #b3261e } .b { stroke: #12608a } .c { stroke: #0b6e54 }
  text.a { fill: #b3261e; stroke: none } text.b { fill: #12608a; stroke: none } text.c { fill: #0b6e54; stroke: none }
  .back { fill: #fffefb }
  @media (prefers-color-scheme: dark) {
    text { fill: #a6b0aa } .title { fill: #eef2ef } .grid { stroke: #303834 } .back { fill: #1a201d } .down { fill: #ff8d80 }
    .a { stroke: #ff8d80 } .b { stroke: #7cc8f2 } .c { stroke: #5fd3ab }
    text.a { fill: #ff8d80 } text.b { fill: #7cc8f2 } text.c { fill: #5fd3ab }
  }`

/** Attempts in a second, one figure for each bin. */
export function ratesOf(timesMs: readonly number[], fromMs: number, toMs: number): number[] {
  const bins = new Array<number>(Math.ceil((toMs - fromMs) / BIN_MS)).fill(0)
  for (const at of timesMs) {
    const bin = Math.floor((at - fromMs) / BIN_MS)
    if (bin >= 0 && bin < bins.length) bins[bin]! += 1_000 / BIN_MS
  }
  return bins
}

/** The picture as SVG. */
export function drawChart(title: string, { fromMs, toMs, downMs, curves }: ChartOptions): string {
  const rates = curves.map(({ timesMs }) => ratesOf(timesMs, fromMs, toMs))
  const step = stepFor(Math.max(...rates.flat()))
  const top = Math.ceil(Math.max(...rates.flat()) / step) * step
  const x = (ms: number) => LEFT + ((ms - fromMs) / (toMs - fromMs)) * (WIDTH - LEFT - RIGHT)
  const y = (rate: number) => HEIGHT - BOTTOM - (rate / top) * (HEIGHT - TOP - BOTTOM)
  const point = (rate: number, bin: number) => `${round(x(fromMs + (bin + 0.5) * BIN_MS))},${round(y(rate))}`
  const marks = Array.from({ length: top / step + 1 }, (_, i) => i * step)
  const seconds = Array.from(
    { length: Math.floor((toMs - fromMs) / 5_000) + 1 },
    (_, i) => fromMs + i * 5_000,
  )
  const parts = [
    `<rect class="back" width="${WIDTH}" height="${HEIGHT}" rx="10"/>`,
    `<text class="title" x="${LEFT}" y="24">${title}</text>`,
    `<rect class="down" x="${x(0)}" y="${TOP}" width="${round(x(downMs) - x(0))}" height="${HEIGHT - TOP - BOTTOM}"/>`,
    `<text x="${round((x(0) + x(downMs)) / 2)}" y="${TOP + 16}" text-anchor="middle">the server is down</text>`,
    ...marks.map(
      (rate) =>
        `<path class="grid" d="M${LEFT} ${round(y(rate))}H${WIDTH - RIGHT}"/><text x="${LEFT - 8}" y="${round(y(rate) + 4)}" text-anchor="end">${rate}</text>`,
    ),
    ...seconds.map(
      (ms) => `<text x="${round(x(ms))}" y="${HEIGHT - 22}" text-anchor="middle">${ms / 1_000} s</text>`,
    ),
    ...curves.map(({ style }, i) => `<path class="${style}" d="M${rates[i]!.map(point).join('L')}"/>`),
    ...curves.map(
      ({ name, style }, i) => `<text class="${style}" x="${LEFT + i * 235}" y="43">${name}</text>`,
    ),
    `<text x="${WIDTH - RIGHT}" y="${HEIGHT - 6}" text-anchor="end">attempts in a second, by time</text>`,
  ]
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img"><title>${title}</title><style>${STYLE}</style>
${parts.join('\n')}
</svg>
`
}

const round = (value: number) => Math.round(value * 10) / 10

function stepFor(max: number): number {
  return [50, 100, 200, 500, 1_000, 2_000].find((step) => max / step <= 6) ?? 5_000
}
