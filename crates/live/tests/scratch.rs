use live::net::*;
#[test]
fn t() {
    let (a, b) = (Namespace::new().unwrap(), Namespace::new().unwrap());
    a.cable("va", &b, "vb").unwrap();
    println!("{}", a.run("ip -d link").unwrap());
    println!("{}", b.run("ip -d link").unwrap());
    println!("{:?}", Interface::find("va"));
    let mut x = a.enter(|| { let i = Interface::find("va").unwrap(); println!("{i:?}"); PacketSocket::open(&i, 0x88b5, &Filter::everything()).unwrap()}).unwrap();
    let mut y = b.enter(|| { let i = Interface::find("vb").unwrap(); println!("{i:?}"); PacketSocket::open(&i, 0x88b5, &Filter::fields(&[(0,4,0xffff_ffff,0x01020304),(14,1,0xf,3)])).unwrap()}).unwrap();
    let mut f = vec![1,2,3,4,5,6,0,0,0,0,0,0,0x88,0xb5];
    f.extend_from_slice(&[0x13; 50]);
    assert!(x.send(&f).unwrap());
    f[14] = 0x14;
    assert!(x.send(&f).unwrap());
    f[14] = 3;
    assert!(x.send(&f).unwrap());
    let mut buf = [0; 2000];
    std::thread::sleep(std::time::Duration::from_millis(100));
    println!("{:?}", y.receive(&mut buf)); println!("{:x?}", &buf[..20]);
    println!("{:?}", y.receive(&mut buf)); println!("{:x?}", &buf[..20]);
    println!("{:?}", y.receive(&mut buf));
    println!("{:?}", x.receive(&mut buf));
    println!("{:?}", x.send(&vec![0; 1515]));
    println!("{:?}", a.run("ip link show nosuch"));
}
