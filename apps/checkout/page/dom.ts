/** Makes elements. Texts are set as texts: nothing that comes from outside is read as markup. */

type Child = Node | string | null

export function make<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Readonly<Record<string, string>> = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag)
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value)
  element.append(...children.filter((child) => child !== null))
  return element
}

export function byId(id: string): HTMLElement {
  const element = document.getElementById(id)
  if (element === null) throw new Error(`The page has no ${id}.`)
  return element
}

/** A choice of one among several, as radio buttons: the browser brings the keyboard with them. */
export function addChoices<T extends string>(
  place: HTMLElement,
  name: string,
  choices: Readonly<Record<T, string>>,
  chosen: T,
  onChange: (value: T) => void,
): void {
  for (const [value, label] of Object.entries(choices) as [T, string][]) {
    const input = make('input', { type: 'radio', name, value })
    input.checked = value === chosen
    input.addEventListener('change', () => onChange(value))
    place.append(make('label', {}, input, make('span', {}, label)))
  }
}

export const euro = (cents: number, currency = 'EUR') =>
  new Intl.NumberFormat('en', { style: 'currency', currency }).format(cents / 100)

export const seconds = (ms: number) => `${(ms / 1_000).toFixed(ms < 10_000 ? 1 : 0)} s`
