export default function Page() {
  return <p>Orders</p>
}
